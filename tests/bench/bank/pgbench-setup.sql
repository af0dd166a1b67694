-- The same ledger for pgbench: ids from sequences, since each client is its own writer.
CREATE SEQUENCE bench_op START 1000000 CACHE 100;
CREATE SEQUENCE bench_hold START 1000000000 CACHE 100; -- far from the jobs of bench_bank, which are named so too
