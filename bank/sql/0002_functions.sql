-- 0002: what the schema's owner does for the service, and what the service's statements ask.

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

-- Makes partitions up to the one after the newest operation's; true when it made any. The service may make
-- none: this runs as the schema's owner, takes nothing from its caller, and gives nobody a right on what it
-- makes (rows come through entry, whose rights count). Statement triggers are a table's own: each has them.
CREATE FUNCTION entry_room () RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last bigint;
    made boolean := false;
BEGIN
    SELECT max (substr (c.relname, 7)::bigint) INTO last FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'bank.entry'::regclass;
    FOR part IN last + 1 .. bank.entry_part (coalesce ((SELECT max (id) FROM bank.op), 0)) + 1 LOOP
        EXECUTE format ('CREATE TABLE bank.entry_%s (LIKE bank.entry INCLUDING CONSTRAINTS)', part);
        EXECUTE format ('CREATE TRIGGER entry_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON bank.entry_%s '
            'FOR EACH STATEMENT EXECUTE FUNCTION bank.refuse_change ()', part);
        EXECUTE format ('CREATE TRIGGER entry_sums AFTER INSERT ON bank.entry_%s REFERENCING NEW TABLE AS fresh '
            'FOR EACH STATEMENT EXECUTE FUNCTION bank.entry_zero_sum ()', part);
        -- Attached, not made as a partition: that would wait for every reader, and the writer for it.
        EXECUTE format ('ALTER TABLE bank.entry ATTACH PARTITION bank.entry_%s FOR VALUES FROM (%s) TO (%s)',
            part, part << 22, (part + 1) << 22);
        made := true;
    END LOOP;
    RETURN made;
END $$;
REVOKE ALL ON FUNCTION entry_room () FROM PUBLIC;
SELECT entry_room ();

CREATE FUNCTION has_role (person bigint, asked text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce ((SELECT r.granted FROM bank.bank_role r WHERE r.person_id = person AND
        r.role = asked ORDER BY r.op_id DESC LIMIT 1), false) $$;

-- The projects above one, the nearest first.
CREATE FUNCTION project_ancestors (project bigint) RETURNS text LANGUAGE sql STABLE AS $$
    WITH RECURSIVE up (id, depth) AS (
        SELECT p.parent_id, 1 FROM bank.project p WHERE p.id = project AND p.parent_id IS NOT NULL
        UNION ALL SELECT p.parent_id, u.depth + 1 FROM up u JOIN bank.project p ON p.id = u.id
            WHERE p.parent_id IS NOT NULL AND u.depth < 16)
    SELECT string_agg (id::text, ',' ORDER BY depth) FROM up $$;

-- How deep the projects below one go.
CREATE FUNCTION project_height (project bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    WITH RECURSIVE down (id, depth) AS (
        SELECT project, 0 UNION ALL SELECT p.id, d.depth + 1 FROM down d JOIN bank.project p ON p.parent_id = d.id
            WHERE d.depth < 16)
    SELECT max (depth)::bigint FROM down $$;

-- For reading.
CREATE FUNCTION leads_above (person bigint, project bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM bank.membership m WHERE m.person_id = person AND m.role = 'lead' AND
        m.valid_to = 9223372036854775807 AND m.project_id = ANY (string_to_array (
        bank.project_ancestors (project), ',')::bigint[])) $$;
CREATE FUNCTION account_named (asked text) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce ((SELECT a.id FROM bank.account a WHERE a.name = asked),
        (SELECT n.account_id FROM bank.account_name n WHERE n.name = asked LIMIT 1)) $$;

-- What is due to be given back of one charge: the newest of its job's come first.
CREATE FUNCTION refund_due_of (a_charge bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT greatest (0, least (c.amount, coalesce (d.refund_most, c.amount) -
        CASE WHEN d.refund_most IS NULL THEN 0 ELSE
            (SELECT coalesce (sum (x.amount), 0) FROM charge x WHERE x.usage_id = c.usage_id AND x.id > c.id) END))::bigint
    FROM charge c JOIN charge d ON d.usage_id = c.usage_id AND d.refund_due WHERE c.id = a_charge
$$;

-- A sentence, or NULL.
CREATE FUNCTION frozen_text (asked text, object bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT 'frozen since ' || to_char (to_timestamp (f.since / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SSZ') ||
        ' by ' || f.who || ': ' || f.reason FROM (SELECT * FROM bank.freezing x WHERE x.what = asked AND
        x.object_id = object ORDER BY x.op_id DESC LIMIT 1) f WHERE f.frozen $$;
-- Of an account, or the project, or one above it.
CREATE FUNCTION account_frozen (account bigint, project bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN EXISTS (SELECT FROM bank.freezing) THEN coalesce (bank.frozen_text ('account', account),
        (SELECT 'project ' || x.name || ' ' || bank.frozen_text ('project', x.id) FROM bank.project x WHERE x.id = ANY (
        string_to_array (concat_ws (',', project, bank.project_ancestors (project)), ',')::bigint[]) AND
        bank.frozen_text ('project', x.id) IS NOT NULL LIMIT 1)) END $$;

-- Whose an allocation and a project are: the agency that granted or deposited it, or made it.
CREATE FUNCTION agency_named (client text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT substring (client FROM '^nui://[^/]+/agency/([^/]+)$') $$;
CREATE FUNCTION giver_of (op bigint, award bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN award IS NULL THEN (SELECT bank.agency_named (o.client) FROM bank.op o WHERE o.id = op)
        ELSE (SELECT f.name FROM bank.award g JOIN bank.funder f ON f.id = g.funder_id WHERE g.id = award) END $$;
-- ",nsf,dfg,": of the project and of those above it.
CREATE FUNCTION project_makers (project bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT ',' || coalesce (string_agg (bank.agency_named (o.client), ',') || ',', '') FROM bank.project p
        JOIN bank.op o ON o.id = p.op_id WHERE p.id = ANY (string_to_array (
        concat_ws (',', project, bank.project_ancestors (project)), ',')::bigint[]) $$;

-- What was split off a deposit is of who gave the deposit, as what was split off a grant is.
CREATE FUNCTION giver_of (op bigint, award bigint, source bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN award IS NOT NULL OR source IS NULL THEN bank.giver_of (op, award) ELSE (WITH RECURSIVE up (op_id, split_from) AS (
        SELECT l.op_id, l.split_from FROM bank.allocation l WHERE l.id = source
        UNION ALL SELECT l.op_id, l.split_from FROM up JOIN bank.allocation l ON l.id = up.split_from)
        SELECT bank.giver_of (op_id, NULL) FROM up WHERE split_from IS NULL) END $$;

-- Sums beyond 64 bits: what an answer's number can hold, and beside it the whole sum in credits as text, to the last
-- micro-credit: a quotient of such numbers is rounded to some 16 digits, a product is not.
CREATE FUNCTION micro (amount numeric) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest (least (amount, 9223372036854775807), -9223372036854775808)::bigint $$;
CREATE FUNCTION wide_credits (amount numeric) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN abs (amount) > 9223372036854775807 THEN trim_scale (amount * 0.000001)::text ELSE '' END $$;
