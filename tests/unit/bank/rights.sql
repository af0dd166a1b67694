-- pgTAP: rights, constraints, triggers and plan shape of the bank's schema. Run by its owner after
-- nui-bank --schema service; "service" is the role that nui-bank connects as.
BEGIN;
CREATE EXTENSION pgtap;
SET search_path = bank, public, pg_catalog;
SELECT no_plan ();

-- What the service may do with each table; nothing may be truncated, nothing be owned.
SELECT table_privs_are ('bank', t, 'service', ARRAY['SELECT', 'INSERT'])
    FROM unnest (ARRAY['op', 'entry', 'block', 'change', 'signer', 'hold', 'hold_leg', 'usage', 'charge', 'charge_leg',
        'refund_leg', 'signed', 'site_ack', 'quote', 'quote_card', 'quote_use', 'quote_cancel', 'recon_row',
        'recon_event', 'checkpoint', 'checkpoint_run']) t;
SELECT table_privs_are ('bank', 'unsealed', 'service', ARRAY['SELECT', 'DELETE']);
-- All other tables, whichever there are, are only read by it: blocks tell of what is made of them.
SELECT table_privs_are ('bank', relname, 'service', ARRAY['SELECT']) FROM pg_class
    WHERE relnamespace = 'bank'::regnamespace AND relkind = 'r' AND NOT relispartition AND
    relname <> ALL (direct_tables ()) AND relname <> 'unsealed';
SELECT is ((SELECT array_agg (attname::text ORDER BY attname) FROM pg_attribute
        WHERE attrelid = ('bank.' || t)::regclass AND attnum > 0 AND
        has_column_privilege ('service', attrelid, attnum, 'UPDATE')), want, 'columns of ' || t)
    FROM (VALUES ('entry', NULL::text[]), ('op', NULL), ('charge', NULL), ('block', NULL),
        ('balance', ARRAY['granted', 'held', 'posted', 'settled']),
        ('hold', ARRAY['amount', 'expires_at', 'open', 'walltime_us']),
        ('hold_leg', ARRAY['released', 'settled']), ('usage', ARRAY['disputed', 'end_at', 'final', 'procs', 'total']),
        ('site_ack', ARRAY['acked', 'ahead']), ('allocation', NULL), ('account', NULL), ('membership', NULL)) v (t, want);
SELECT function_privs_are ('bank', 'change_apply', ARRAY[]::text[], 'service', ARRAY[]::text[]);
SELECT table_privs_are ('bank', t, 'service', ARRAY[]::text[]) FROM unnest (ARRAY['entry_0', 'entry_1']) t;
SELECT function_privs_are ('bank', 'entry_room', ARRAY[]::text[], 'service', ARRAY['EXECUTE']);
SELECT function_privs_are ('bank', 'entry_room', ARRAY[]::text[], 'other', ARRAY[]::text[]);
SELECT function_privs_are ('bank', 'signed_forget', ARRAY['bigint', 'bigint', 'bigint'], 'service', ARRAY['EXECUTE']);
SELECT function_privs_are ('bank', 'signed_forget', ARRAY['bigint', 'bigint', 'bigint'], 'other', ARRAY[]::text[]);
SELECT is ((SELECT count (*)::int FROM pg_tables WHERE schemaname = 'bank' AND tableowner = 'service'),
    0, 'the service owns nothing');
SELECT schema_privs_are ('bank', 'service', ARRAY['USAGE']);

-- As that role: every way to change history is refused, that of triggers too.
SET ROLE service;
SELECT throws_ok (statement, '42501', NULL, statement) FROM unnest (ARRAY[
    'UPDATE bank.entry SET amount = 1', 'DELETE FROM bank.entry', 'TRUNCATE bank.entry',
    'UPDATE bank.entry_0 SET amount = 1', 'INSERT INTO bank.entry_1 SELECT * FROM bank.entry', 'DROP TABLE bank.entry_1',
    'ALTER TABLE bank.entry DETACH PARTITION bank.entry_0', 'CREATE TABLE bank.entry_9 (LIKE bank.entry)',
    'UPDATE bank.op SET note = $x$x$x$', 'DELETE FROM bank.op', 'UPDATE bank.block SET root = prev',
    'UPDATE bank.charge SET amount = 0', 'DELETE FROM bank.hold', 'UPDATE bank.rate SET multiplier_ppm = 0',
    'INSERT INTO bank.bank_role VALUES (1, 1, $x$manager$x$, true)', 'UPDATE bank.allocation SET credit_limit = 1',
    'UPDATE bank.account SET name = name', 'UPDATE bank.membership SET valid_to = 1', 'INSERT INTO bank.unsealed (line) VALUES ($x$x$x$)',
    'INSERT INTO bank.balance VALUES (1, 0, 0, 0, 0)', 'DELETE FROM bank.account_fallback', 'UPDATE bank.change SET objects = $x$$x$',
    'DELETE FROM bank.balance', 'DELETE FROM bank.signed', 'UPDATE bank.signed SET expires_at = 0', 'UPDATE bank.allocation SET valid_to = 1',
    'ALTER TABLE bank.entry DISABLE TRIGGER ALL', 'DROP TRIGGER entry_fixed ON bank.entry',
    'DROP TABLE bank.entry', 'ALTER TABLE bank.entry ADD x integer', 'SET session_replication_role = replica',
    'CREATE TABLE bank.x (y integer)', 'INSERT INTO bank.schema_version VALUES (0, $x$x$x$, now ())'])
    statement;
SELECT ok (NOT bank.entry_room (), 'there is room for the operations to come');
-- Lines are of no other tables than objects, and are nothing without their block.
SELECT throws_ok (format ('INSERT INTO bank.change VALUES (1, %L)', line), '42501', NULL, line) FROM unnest (ARRAY[
    '{"add":"op"}', '{"put":"hold","id":1,"amount":0}', '{"drop":"entry","op_id":1}', '{"add":"schema_version","version":1}',
    '{"add":"pg_authid"}', '{}']) line;
SELECT throws_ok ('INSERT INTO bank.change VALUES (1, $x${"put":"account","id":99,"name":"x"}$x$)', '23000', NULL,
    'what is put is there');
SELECT lives_ok ('INSERT INTO bank.change VALUES (1, $x${"put":"account","id":2,"name":"x"}$x$)', 'a change');
SELECT throws_ok ('SET CONSTRAINTS ALL IMMEDIATE', '23503', NULL, 'without its block');
RESET ROLE;

-- Even the owner is stopped by the triggers.
INSERT INTO op VALUES (1, 'c', '\x00112233445566778899aabbccddeeff', decode (repeat ('00', 32), 'hex'),
    'deposit', 'c', '', '', '', 1, 1, 0, '');
INSERT INTO entry VALUES (1, 0, 'P', 1, 1, 1, -5, 1, 1), (1, 1, 'P', 1, 2, 2, 5, 1, 1);
SELECT throws_ok (statement, '23000', NULL, statement) FROM unnest (ARRAY['UPDATE entry SET amount = 1',
    'DELETE FROM entry', 'TRUNCATE entry', 'UPDATE op SET note = $x$x$x$', 'DELETE FROM op',
    'UPDATE entry_0 SET amount = 1', 'DELETE FROM entry_1', 'TRUNCATE entry_1',
    'TRUNCATE bank_role', 'DELETE FROM allocation_scope']) statement;

-- What a signed job was paid for as is forgotten once it has expired and nothing is held for it, by steps.
INSERT INTO signed SELECT 'u', decode (lpad (to_hex (i), 32, '0'), 'hex'), decode (repeat ('00', 32), 'hex'), 'g', 'm', '', i,
    CASE WHEN i % 2 = 0 THEN 5 ELSE (extract (epoch FROM now ()) * 1000000)::bigint + 3600000000 END
    FROM generate_series (1, 1000) i;
INSERT INTO hold (id, op_id, site, site_job, component, incarnation, grid_job, asked_id, account_id, identity, procs,
    walltime_us, start_at, expires_at, rate_version, rate_ppm, amount, open)
    VALUES (4, 1, 's', 's.1', '', 0, 'g', 1, 1, 'u', 1, 1, 1, 1, 1, 1, 0, true);
SELECT throws_ok (statement, '23000', NULL, statement) FROM unnest (ARRAY['UPDATE signed SET hold_id = 0',
    'TRUNCATE signed', 'DELETE FROM signed WHERE hold_id = 1']) statement;
SET ROLE service;
SELECT throws_ok ('SELECT bank.signed_forget (9223372036854775807, 0, 1000000)', '23000', NULL,
    'none is forgotten before its time, whatever the service asks for');
SELECT ok ((SELECT f.next_block = 2 AND f.forgotten BETWEEN 1 AND 498 FROM bank.signed_forget (6, 0, 2) f),
    'two blocks at a time');
SELECT is ((SELECT f.next_block FROM bank.signed_forget (6, 2, 1000000) f), 0::bigint, 'and round again');
SELECT is ((SELECT f.forgotten FROM bank.signed_forget (6, 0, 1000000) f), 0::bigint, 'once');
RESET ROLE;
SELECT is ((SELECT array[count (*), count (*) FILTER (WHERE expires_at = 5), min (hold_id) FILTER (WHERE expires_at = 5)]
    FROM signed), ARRAY[501, 1, 4]::bigint[], 'what is held or has not expired stays');

-- Constraints.
SELECT throws_ok (statement, '23514', NULL, statement) FROM unnest (ARRAY[
    'INSERT INTO entry VALUES (2, 0, $x$P$x$, 1, 1, 1, 7, 1, 1)',
    'INSERT INTO entry VALUES (2, 0, $x$P$x$, 1, 1, 1, 0, 1, 1)',
    'INSERT INTO entry_1 VALUES (4194304, 0, $x$P$x$, 1, 1, 1, 7, 1, 1)',
    'INSERT INTO entry VALUES (8388608, 0, $x$P$x$, 1, 1, 1, -7, 1, 1), (8388608, 1, $x$P$x$, 1, 1, 1, 7, 1, 1)',
    'INSERT INTO balance VALUES (1, 0, 0, 0, -1)',
    'INSERT INTO allocation (id, account_id, valid_from, valid_to, description) VALUES (99, 1, 5, 5, $x$$x$)',
    'INSERT INTO account (id, name, class, unit_id) VALUES (99, $x$x$x$, $x$PROJECT$x$, 1)',
    'INSERT INTO account (id, name, class, unit_id) VALUES (99, $x$x$x$, $x$DEBT$x$, 1)',
    'INSERT INTO hold_leg VALUES (1, 0, 1, 5, 3, 3)',
    'INSERT INTO charge_leg VALUES (1, 0, 1, 0, $x$HELD$x$)']) statement;
SELECT throws_ok ('INSERT INTO op SELECT 2, client, key, hash, kind, on_behalf, site, job, note, '
    'effective_at, recorded_at, status, outcome FROM op WHERE id = 1', '23505', NULL,
    'a key is used once');
SELECT throws_ok ('INSERT INTO entry VALUES (1, 0, $x$P$x$, 1, 1, 1, 5, 1, 1), '
    '(1, 2, $x$P$x$, 1, 1, 1, -5, 1, 1)', '23505', NULL, 'a leg is written once');
-- The journal's next part is made when its last one begins to fill.
INSERT INTO op SELECT 4194304, client, substr (hash, 1, 16), hash, kind, on_behalf, site, job, note, effective_at, recorded_at,
    status, outcome FROM op WHERE id = 1;
INSERT INTO entry VALUES (4194303, 0, 'P', 1, 1, 1, -5, 1, 1), (4194303, 1, 'P', 1, 2, 2, 5, 1, 1),
    (4194304, 0, 'P', 1, 1, 1, -5, 1, 1), (4194304, 1, 'P', 1, 2, 2, 5, 1, 1);
SELECT is ((SELECT array_agg (op_id) FROM entry_1), ARRAY[4194304, 4194304]::bigint[], 'a part holds its operations');
SET ROLE service;
SELECT ok (bank.entry_room (), 'the service has more room made');
SELECT ok (NOT bank.entry_room (), 'once');
RESET ROLE;
SELECT table_privs_are ('bank', 'entry_2', 'service', ARRAY[]::text[]);
SELECT throws_ok (statement, '23000', NULL, statement) FROM unnest (ARRAY['UPDATE entry_2 SET amount = 1',
    'DELETE FROM entry_2', 'TRUNCATE entry_2']) statement;
SELECT has_trigger ('bank'::name, 'entry_2'::name, 'entry_sums'::name);
SELECT has_trigger ('bank'::name, t::name, (t || '_fixed')::name) FROM unnest (ARRAY['op', 'entry', 'charge', 'charge_leg',
    'refund_leg', 'rate', 'rate_factor', 'block', 'signer', 'site_right', 'bank_role',
    'allocation_scope', 'change']) t;
SELECT has_trigger ('bank'::name, 'entry'::name, 'entry_sums'::name);

-- What a column's type admits (0023), by itself: with no trigger in the way.
SET session_replication_role = replica;
INSERT INTO balance VALUES (1, 0, 0, 0, 0);
INSERT INTO hold_leg VALUES (4, 0, 1, 0, 0, 0);
INSERT INTO usage VALUES (1, 's', 's.1', '', 0, 'g', 4, 1, 'u', 1, 1, 1, 0, false);
INSERT INTO charge VALUES (1, 1, 1, 4, 0, 1, 1, 1, true, true, 1, 1, 0, 0, 0, '');
INSERT INTO charge_leg VALUES (1, 0, 1, 1, 'HELD');
INSERT INTO site_ack VALUES ('s', 0, '');
INSERT INTO block VALUES (1, 1, 1, 1, decode (repeat ('00', 32), 'hex'), decode (repeat ('00', 32), 'hex'), '', '', '');
CREATE TEMP TABLE typed AS SELECT * FROM (VALUES ('op', 'key', '\x00'), ('op', 'hash', '\x00'),
    ('site_ack', 'acked', '-1'), ('signed', 'uuid', '\x00'), ('signed', 'hash', '\x00'),
    ('block', 'prev', '\x00'), ('block', 'root', '\x00'), ('block', 'ops', '0'),
    ('balance', 'settled', '-1'), ('balance', 'held', '-1'), ('hold', 'amount', '-1'), ('hold_leg', 'amount', '-1'),
    ('hold_leg', 'settled', '-1'), ('hold_leg', 'released', '-1'), ('usage', 'total', '-1'), ('charge', 'amount', '-1'),
    ('charge', 'released', '-1'), ('charge', 'refund_most', '-1'), ('charge_leg', 'amount', '0'),
    ('charge_leg', 'source', 'X'), ('entry', 'amount', '0'), ('entry', 'layer', 'X'), ('entry_0', 'amount', '0'),
    ('entry_2', 'layer', 'X')) v (t, col, bad);
INSERT INTO entry_2 VALUES (8388608, 0, 'P', 1, 1, 1, 1, 1, 1);
SELECT throws_ok (format ('UPDATE %I SET %I = %L', t, col, bad), '23514', format ('value for domain %s violates check '
    'constraint "%s_check"', format_type (atttypid, -1), format_type (atttypid, -1)), t || '.' || col || ' ' || bad)
    FROM typed JOIN pg_attribute ON attrelid = t::regclass AND attname = col;
SELECT throws_ok (format ('UPDATE %I SET %I = NULL', t, col), '23502', NULL, t || '.' || col || ' is not null')
    FROM typed WHERE col <> 'refund_most';
RESET session_replication_role;

-- Plan shape: with the writer's settings each key is one index probe, whatever the sizes.
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_bitmapscan = off;
CREATE FUNCTION plan_of (query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; whole text := '';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN ' || query LOOP whole := whole || line || E'\n'; END LOOP;
    RETURN whole;
END $$;
PREPARE keys (text[], bytea[]) AS SELECT o.id FROM unnest ($1, $2) AS k (client, key) CROSS JOIN LATERAL
    (SELECT * FROM op x WHERE x.client = k.client AND x.key = k.key LIMIT 1) o;
SELECT matches (plan_of ('EXECUTE keys (NULL, NULL)'), 'Index (Only )?Scan using op_client_key_key',
    'keys by index');
PREPARE put (bigint[], bigint[]) AS UPDATE balance b SET held = n.held FROM unnest ($1, $2) AS n (id, held)
    WHERE b.allocation_id = n.id;
SELECT matches (plan_of ('EXECUTE put (NULL, NULL)'), 'Index Scan using balance_pkey', 'balances by index');
PREPARE holds (text[]) AS SELECT h.id FROM unnest ($1) AS k (job) CROSS JOIN LATERAL (SELECT * FROM hold x
    WHERE x.site = 's' AND x.site_job = k.job AND x.component = '' AND x.incarnation = 0 AND x.open LIMIT 1) h;
SELECT matches (plan_of ('EXECUTE holds (NULL)'), 'Index (Only )?Scan using hold_incarnation',
    'open holds by index');
PREPARE new_jobs (text[]) AS SELECT k.job FROM unnest ($1) AS k (job) CROSS JOIN LATERAL (SELECT FROM usage x
    WHERE x.site = 's' AND x.site_job = k.job AND x.component = '' AND x.incarnation = 0 LIMIT 1) u;
SELECT matches (plan_of ('EXECUTE new_jobs (NULL)'), 'Index (Only )?Scan using usage_site_site_job_component_incarnation_key',
    'usages by index');
PREPARE of_op (bigint) AS SELECT * FROM entry WHERE op_id = $1;
SELECT matches (plan_of ('EXECUTE of_op (5)'), 'Subplans Removed: 2.*Index Scan using entry_0_pkey', 'one part of an operation');
RESET ALL;
SET search_path = bank, public, pg_catalog;
PREPARE lines AS SELECT * FROM entry WHERE account_id = 5 AND recorded_at >= 7;
SET enable_seqscan = off;
SELECT matches (plan_of ('EXECUTE lines'), 'entry_' || part || '_account.*Index Cond: ..account_id = 5. AND .recorded_at >= 7',
    'statements by account and time in part ' || part) FROM unnest (ARRAY['0', '1', '2']) part;

SELECT * FROM finish ();
ROLLBACK;
