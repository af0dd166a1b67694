-- pgbench.sql with the audit's chain: each transaction makes a block as nui-bank does, SHA-256 over what its operation and
-- its entries say and a link to the block before, with any bytes for a signature. The chain is locked until the end, so
-- the block comes as late as can be: what nothing asks for in a WITH is run from its last part to its first.
\set alloc random(:first, :last)
WITH n AS (SELECT nextval('bank.bench_op') AS op, nextval('bank.bench_hold') AS id,
                  uuid_send(gen_random_uuid()) AS key, (extract(epoch FROM now()) * 1000000)::bigint AS t),
     b AS (UPDATE bank.balance SET held = held + 10000000
            WHERE allocation_id = :alloc AND posted - held >= 10000000 RETURNING allocation_id),
     r AS MATERIALIZED (SELECT n.op, n.t, sha256('nui-op-v1 nui://test/site/alpha hold nui://test/user/alice alpha grid.1 '
                  '1 procs * 10 s * 1 = 10 credits 0 2 0 H 1 10000000 1 H 1 3 3 -10000000'::bytea || int8send(n.op) || n.key ||
                  sha256(n.key) || int8send(n.t) || n.key || n.key || int8send(:account) || int8send(b.allocation_id)) AS root
             FROM n, b),
     k AS (SELECT r.*, x.* FROM r, bank.bench_link(r.op, r.t, r.root) AS x),
     s AS (INSERT INTO bank.bench_block SELECT k.number, k.op, 1, k.t, k.prev, k.root, sha256('signer'),
                  sha256('a signature of 71 bytes') || sha256('as nui-bank''s are') || '1234567' FROM k),
     o AS (INSERT INTO bank.op SELECT n.op, 'nui://test/site/alpha', n.key, sha256(n.key), 'hold', 'nui://test/user/alice',
                  'alpha', 'grid.1', '1 procs * 10 s * 1 = 10 credits', n.t, n.t, 0, n.key || n.key FROM n, b),
     h AS (INSERT INTO bank.hold SELECT n.id, n.op, 'alpha', 'alpha.' || n.id, 'main', 0, 'grid.1', :account, :account,
                  'nui://test/user/alice', 1, 10000000, n.t, n.t, 1, 1000000, 10000000, true FROM n, b),
     l AS (INSERT INTO bank.hold_leg SELECT n.id, 0, b.allocation_id, 10000000, 0, 0 FROM n, b),
     e AS (INSERT INTO bank.entry SELECT n.op, g.leg, 'H', 1, CASE g.leg WHEN 0 THEN :account ELSE 3 END,
                  CASE g.leg WHEN 0 THEN b.allocation_id ELSE 3 END, CASE g.leg WHEN 0 THEN 10000000 ELSE -10000000 END, n.t, n.t
             FROM n, b, (VALUES (0), (1)) AS g (leg))
SELECT n.id AS hold FROM n \gset
WITH n AS (SELECT nextval('bank.bench_op') AS op, uuid_send(gen_random_uuid()) AS key,
                  (extract(epoch FROM now()) * 1000000)::bigint AS t),
     h AS (UPDATE bank.hold SET open = false WHERE id = :hold AND open RETURNING id, amount),
     l AS (UPDATE bank.hold_leg SET settled = 8000000, released = 2000000 FROM h WHERE hold_id = h.id AND leg = 0),
     b AS (UPDATE bank.balance SET held = held - 10000000, posted = posted - 8000000, settled = settled + 8000000
             FROM h WHERE allocation_id = :alloc RETURNING allocation_id),
     r AS MATERIALIZED (SELECT n.op, n.t, sha256('nui-op-v1 nui://test/site/alpha charge nui://test/site/alpha alpha grid.1 '
                  '1 procs * 8 s * 1 = 8 credits 0 4 0 H 1 -10000000 1 H 1 3 3 10000000 2 P 1 -8000000 3 P 1 3 3 8000000'::bytea ||
                  int8send(n.op) || n.key || sha256(n.key) || int8send(n.t) || n.key || int8send(:account) ||
                  int8send(b.allocation_id)) AS root
             FROM n, b),
     k AS (SELECT r.*, x.* FROM r, bank.bench_link(r.op, r.t, r.root) AS x),
     s AS (INSERT INTO bank.bench_block SELECT k.number, k.op, 1, k.t, k.prev, k.root, sha256('signer'),
                  sha256('a signature of 71 bytes') || sha256('as nui-bank''s are') || '1234567' FROM k),
     o AS (INSERT INTO bank.op SELECT n.op, 'nui://test/site/alpha', n.key, sha256(n.key), 'charge', 'nui://test/site/alpha',
                  'alpha', 'grid.1', '1 procs * 8 s * 1 = 8 credits', n.t, n.t, 0, n.key FROM n, b),
     u AS (INSERT INTO bank.usage SELECT :hold, 'alpha', 'alpha.' || :hold, 'main', 0, 'grid.1', :hold, :account,
                  'nui://test/user/alice', 1, n.t, n.t, 8000000, true FROM n, b),
     c AS (INSERT INTO bank.charge SELECT :hold, n.op, :hold, :hold, 0, 1, n.t, n.t, true, true, 1, 1000000, 8000000,
                  8000000, 2000000, '1 procs * 8 s * 1 = 8 credits' FROM n, b),
     g AS (INSERT INTO bank.charge_leg SELECT :hold, 0, b.allocation_id, 8000000, 'HELD' FROM b),
     e AS (INSERT INTO bank.entry SELECT n.op, x.leg, x.layer::"char", 1, CASE WHEN x.leg % 2 = 0 THEN :account ELSE 3 END,
                  CASE WHEN x.leg % 2 = 0 THEN b.allocation_id ELSE 3 END, x.amount, n.t, n.t
             FROM n, b, (VALUES (0, 'H', -10000000), (1, 'H', 10000000), (2, 'P', -8000000), (3, 'P', 8000000))
                  AS x (leg, layer, amount))
SELECT 1 AS done FROM n \gset
