-- The same ledger for pgbench: ids from sequences, since each client is its own writer. Its operations have parts of the
-- journal of their own, from the 9th on; one operation far away makes that there are such parts.
INSERT INTO op SELECT 20::bigint << 22, 'bench', key, hash, kind, on_behalf, site, job, note, effective_at, recorded_at, status,
    outcome FROM op ORDER BY id LIMIT 1;
SELECT entry_room ();
CREATE SEQUENCE bench_op START 33554432 CACHE 100;
CREATE SEQUENCE bench_hold START 1000000000 CACHE 100; -- far from the jobs of bench_bank, which are named so too
-- A chain of blocks beside nui-bank's: a table as its is, and what the next block begins with. Who asks for that is alone
-- until the end of its transaction: a lock that queues, since on the row itself all who wait try again at each end.
CREATE TABLE bench_block (LIKE block INCLUDING ALL);
CREATE TABLE bench_chain (number bigint NOT NULL, prev bytea NOT NULL, link bytea NOT NULL) WITH (fillfactor = 10);
INSERT INTO bench_chain VALUES (0, '', sha256 (''));
CREATE FUNCTION bench_link (op bigint, at bigint, root bytea, OUT number bigint, OUT prev bytea) LANGUAGE plpgsql AS $$
BEGIN
    IF pg_advisory_xact_lock (17) IS NULL THEN END IF;
    UPDATE bank.bench_chain c SET number = c.number + 1, prev = c.link, link = sha256 (int8send (c.number + 1) ||
            int8send (op) || int8send (1) || int8send (at) || c.link || root)
        RETURNING c.number, c.prev INTO bench_link.number, bench_link.prev;
END $$;
