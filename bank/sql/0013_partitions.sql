-- 0013: the journal in partitions by operation, so that the indexes that are written stay small and old
-- parts can be vacuumed, backed up and moved to other disks by themselves. By operation, not by month: a
-- leg is then written once for certain (the key holds the partition's column), and operations are numbered
-- in the order of their times. What was written before becomes the first partition as it stands. op, hold
-- and usage stay whole: keys and jobs are unique over all times.

-- entry_N ends with the operations of number N: each holds those of one.
CREATE FUNCTION entry_part (op bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT op >> 22 $$;

ALTER TABLE entry RENAME TO entry_old;
ALTER INDEX entry_pkey RENAME TO entry_old_pkey;
ALTER INDEX entry_account RENAME TO entry_old_account;
CREATE TABLE entry (LIKE entry_old INCLUDING CONSTRAINTS, PRIMARY KEY (op_id, leg)) PARTITION BY RANGE (op_id);
CREATE INDEX entry_account ON entry (account_id, recorded_at);
CREATE TRIGGER entry_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON entry
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
CREATE TRIGGER entry_sums AFTER INSERT ON entry REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION entry_zero_sum ();

DO $$
DECLARE
    part bigint := bank.entry_part (coalesce ((SELECT max (op_id) FROM bank.entry_old), 0));
BEGIN
    EXECUTE format ('ALTER TABLE bank.entry_old RENAME TO entry_%s', part);
    EXECUTE format ('ALTER INDEX bank.entry_old_pkey RENAME TO entry_%s_pkey', part);
    EXECUTE format ('ALTER INDEX bank.entry_old_account RENAME TO entry_%s_account', part);
    EXECUTE format ('ALTER TABLE bank.entry ATTACH PARTITION bank.entry_%s FOR VALUES FROM (MINVALUE) TO (%s)',
        part, (part + 1) << 22);
END $$;

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
