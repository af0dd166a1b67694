-- 0020: every hold of a signed job, not the first alone, so that the sum of what one signature pays for is
-- bounded; and until when it must be remembered: from its expiry on nobody takes it for the first time.

ALTER TABLE signed RENAME TO signed_old;
ALTER TABLE signed_old RENAME CONSTRAINT signed_pkey TO signed_old_pkey;
CREATE TABLE signed (
    identity   text COLLATE "C" NOT NULL,
    uuid       bytea  NOT NULL CHECK (length (uuid) = 16),
    hash       bytea  NOT NULL CHECK (length (hash) = 32), -- SHA-256 of what was signed
    grid_job   text COLLATE "C" NOT NULL,
    meta       text COLLATE "C" NOT NULL, -- '' where the site did not say
    part       text COLLATE "C" NOT NULL, -- the component, as it was signed
    hold_id    bigint NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (uuid, identity, hold_id)
);

-- Those of before: their holds by name. What was signed is not known any more; a year after its first hold
-- nothing of it is left to be taken for the first time.
INSERT INTO signed SELECT s.identity, s.uuid, s.hash, s.grid_job, s.meta, h.component, h.id,
    o.recorded_at + 31536000000000 FROM signed_old s JOIN op o ON o.id = s.op_id
    JOIN hold h ON h.identity = s.identity AND h.grid_job = s.grid_job;
DROP TABLE signed_old;

CREATE TRIGGER signed_fixed BEFORE UPDATE OR TRUNCATE ON signed
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();

CREATE FUNCTION signed_past () RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.expires_at >= extract (epoch FROM clock_timestamp ()) * 1000000 THEN
        RAISE EXCEPTION 'the signed job of hold % has not expired: its row guards against replays',
            OLD.hold_id USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER signed_past BEFORE DELETE ON signed FOR EACH ROW EXECUTE FUNCTION signed_past ();

-- Forgets what expired before a moment and nothing is held for, among so many blocks of the table: a walk
-- around it needs no index, which every hold would pay for. The service may delete nothing: this runs as the
-- schema's owner, and the trigger above bounds what it may be asked for. next_block 0: the walk begins anew.
CREATE FUNCTION signed_forget (before bigint, first_block bigint, blocks bigint,
    OUT next_block bigint, OUT forgotten bigint) LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM bank.signed s WHERE s.ctid >= format ('(%s,0)', first_block)::tid AND
        s.ctid < format ('(%s,0)', first_block + blocks)::tid AND s.expires_at < before AND
        NOT EXISTS (SELECT FROM bank.hold h WHERE h.id = s.hold_id AND h.open);
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    next_block := first_block + blocks;
    IF next_block >= pg_relation_size ('bank.signed') / current_setting ('block_size')::bigint THEN
        next_block := 0;
    END IF;
END $$;
REVOKE ALL ON FUNCTION signed_forget (bigint, bigint, bigint) FROM PUBLIC;
