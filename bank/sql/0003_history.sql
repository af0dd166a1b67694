-- 0003: the history: what a block's operations made of the bank's tables is part of the block: each row as it was
-- written is a line, and each line a leaf beside the operations' (proto/audit/block.h). A line is
--   {"add":"account","id":4,…}   a row that is new; "put" sets columns of one that is there, "drop" takes rows away,
--                                "was" tells of one that was there before lines were kept
--   ["add_hold",4,12,…]          a row that the service wrote itself, by its statement's name and columns (content.h)
-- Rows of what jobs do (direct_tables) are written by the service and told of in the block. All other tables can be
-- changed only by adding a row to "change", whose trigger does what its lines say, and which must have its block.

-- Written by the service itself.
CREATE FUNCTION direct_tables () RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY['op', 'entry', 'block', 'change', 'signer', 'hold', 'hold_leg', 'usage', 'charge', 'charge_leg',
        'refund_leg', 'signed', 'site_ack', 'quote', 'quote_card', 'quote_use', 'quote_cancel', 'recon_row',
        'recon_event', 'checkpoint', 'checkpoint_run'] $$;

-- All tables whose rows lines tell of: not the chain itself, nor what is only derived from it. Lines are shown to who
-- asks for a proof, so none tells of the hand-overs' secret: that it was changed shows in refused holds.
CREATE FUNCTION told_tables () RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT c.relname::text FROM pg_catalog.pg_class c WHERE c.relnamespace = 'bank'::regnamespace AND
        c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname NOT IN ('op', 'entry', 'block', 'change',
        'signer', 'unsealed', 'schema_version', 'checkpoint', 'checkpoint_run', 'handover') $$;

CREATE FUNCTION key_of (tbl text) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT array_agg (a.attname::text ORDER BY k.n) FROM pg_catalog.pg_index i
        CROSS JOIN LATERAL unnest (i.indkey) WITH ORDINALITY k (num, n)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num
        WHERE i.indrelid = ('bank.' || pg_catalog.quote_ident (tbl))::regclass AND i.indisprimary $$;

-- Runs as the schema's owner: the service has no right to write to these tables, and none on this function but
-- through a row of "change".
CREATE FUNCTION change_apply () RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    line jsonb;
    verb text;
    tbl  text;
    key  text[];
    cols text[];
    done bigint;
BEGIN
    FOR line IN SELECT l::jsonb FROM string_to_table (NEW.objects, E'\n') l LOOP
        verb := CASE WHEN line ? 'add' THEN 'add' WHEN line ? 'put' THEN 'put' WHEN line ? 'drop' THEN 'drop' END;
        CONTINUE WHEN verb IS NULL AND line ? 'was';
        tbl := line ->> verb;
        line := line - verb;
        IF tbl IS NULL OR tbl NOT IN (SELECT bank.told_tables ()) OR tbl = ANY (bank.direct_tables ()) THEN
            RAISE EXCEPTION 'a change of % cannot be told of in a line', coalesce (tbl, 'nothing')
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        key := bank.key_of (tbl);
        SELECT array_agg (quote_ident (k)) INTO cols FROM jsonb_object_keys (line) k;
        EXECUTE format (CASE verb
            WHEN 'add' THEN 'INSERT INTO bank.%1$I (%2$s) SELECT %2$s FROM jsonb_populate_record (NULL::bank.%1$I, $1)'
            WHEN 'put' THEN 'UPDATE bank.%1$I t SET %3$s FROM jsonb_populate_record (NULL::bank.%1$I, $1) n WHERE %4$s'
            ELSE 'DELETE FROM bank.%1$I t USING jsonb_populate_record (NULL::bank.%1$I, $1) n WHERE %5$s' END,
            tbl, array_to_string (cols, ', '),
            (SELECT string_agg (format ('%1$s = n.%1$s', c), ', ') FROM unnest (cols) c
                WHERE c <> ALL (SELECT quote_ident (k) FROM unnest (key) k)),
            (SELECT string_agg (format ('t.%1$I = n.%1$I', k), ' AND ') FROM unnest (key) k),
            (SELECT string_agg (format ('t.%1$s = n.%1$s', c), ' AND ') FROM unnest (cols) c)) USING line;
        GET DIAGNOSTICS done = ROW_COUNT;
        IF verb = 'put' AND done <> 1 THEN
            RAISE EXCEPTION 'a change of % is of % rows, not one: %', tbl, done, line
                USING ERRCODE = 'integrity_constraint_violation';
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION change_apply () FROM PUBLIC;
CREATE TRIGGER change_apply AFTER INSERT ON change FOR EACH ROW EXECUTE FUNCTION change_apply ();

CREATE AGGREGATE jsonb_over (jsonb) (SFUNC = jsonb_concat, STYPE = jsonb, INITCOND = '{}');

-- For migrations: all rows of a table, as they are now, are told of in the next block. One that adds a column with a
-- default need not; one that changes rows must.
CREATE FUNCTION tell_again (tbl text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format ('INSERT INTO bank.unsealed (line) SELECT (jsonb_build_object (''was'', %1$L) || to_jsonb (t_row))::text '
        'FROM bank.%1$I t_row ORDER BY %2$s', tbl, (SELECT string_agg (quote_ident (k), ', ') FROM unnest (bank.key_of (tbl)) k));
END $$;

-- The lines of all blocks give the rows of all tables: what breaks that, by table. shapes: a line for each of the
-- service's own statements, its name, its table, its columns ("name?": 0 stands for NULL).
CREATE FUNCTION history_check (shapes text)
    RETURNS TABLE (rule text, checked bigint, broken bigint, example text) LANGUAGE plpgsql STABLE
    SET search_path = bank, pg_catalog AS $$
DECLARE
    t      record;
    keys   text := '';
    actual text := '';
BEGIN
    FOR t IN SELECT told AS name, key_of (told) AS key, (SELECT string_agg (format ('%L, %s', a.attname,
            coalesce (pg_get_expr (d.adbin, d.adrelid), 'NULL')), ', ') FROM pg_attribute a LEFT JOIN pg_attrdef d ON
            d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = ('bank.' || quote_ident (told))::regclass AND
            a.attnum > 0 AND NOT a.attisdropped) AS defaults FROM told_tables () told ORDER BY told LOOP
        keys := keys || format ('UNION ALL SELECT %L, %L::text[], jsonb_build_object (%s) ', t.name, t.key, t.defaults);
        actual := actual || format ('UNION ALL SELECT %1$L, jsonb_build_array (%2$s), to_jsonb (t_row) FROM bank.%1$I t_row ',
            t.name, (SELECT string_agg (format ('t_row.%I', k), ', ') FROM unnest (t.key) k));
    END LOOP;
    RETURN QUERY EXECUTE format ($q$
WITH key (tbl, cols, defaults) AS MATERIALIZED (%s),
actual (tbl, key, r) AS (%s),
shape AS MATERIALIZED (SELECT p[1] AS name, p[2] AS tbl, p[3:] AS cols FROM
    (SELECT string_to_array (translate (s, '?', ''), ' ') AS p FROM string_to_table ($1, E'\n') s WHERE s <> '') x),
line AS (SELECT b.number AS block, l.n AS at, l.line::jsonb AS j FROM block b LEFT JOIN change c ON c.block = b.number
        CROSS JOIN LATERAL string_to_table (concat_ws (E'\n', nullif (c.objects, ''), nullif (b.rows, '')), E'\n')
        WITH ORDINALITY l (line, n)
    UNION ALL SELECT 9223372036854775807, u.id, u.line::jsonb FROM unsealed u),
named AS (SELECT l.block, l.at, coalesce (l.j ->> 'add', l.j ->> 'put', l.j ->> 'was', l.j ->> 'drop') AS tbl,
        l.j - ARRAY['add', 'put', 'was', 'drop'] AS cols, l.j ? 'drop' AS is_drop FROM line l WHERE jsonb_typeof (l.j) = 'object'
    UNION ALL SELECT l.block, l.at, s.tbl, (SELECT jsonb_object_agg (s.cols[e.n - 1], e.v)
        FROM jsonb_array_elements (l.j) WITH ORDINALITY e (v, n) WHERE e.n > 1), false
        FROM line l LEFT JOIN shape s ON s.name = l.j ->> 0 WHERE jsonb_typeof (l.j) = 'array'),
keyed AS (SELECT n.*, k.defaults, (SELECT jsonb_agg (n.cols -> c ORDER BY i) FROM unnest (k.cols) WITH ORDINALITY u (c, i)) AS key
    FROM named n JOIN key k ON k.tbl = n.tbl),
dropped AS MATERIALIZED (SELECT * FROM keyed WHERE is_drop),
told AS (SELECT k.tbl, k.key, k.defaults || jsonb_over (k.cols ORDER BY k.block, k.at) AS r FROM keyed k
    WHERE NOT k.is_drop AND NOT EXISTS (SELECT FROM dropped d WHERE d.tbl = k.tbl AND
        (d.block, d.at) > (k.block, k.at) AND k.cols @> d.cols) GROUP BY k.tbl, k.key, k.defaults),
met AS (SELECT coalesce (t.tbl, a.tbl) AS tbl, coalesce (t.key, a.key) AS key, t.r AS due, a.r AS found
    FROM told t FULL JOIN actual a ON a.tbl = t.tbl AND a.key = t.key),
judged AS (SELECT m.tbl, CASE WHEN m.found = m.due THEN NULL
    -- What a signed job was paid for as is forgotten when it has expired.
    WHEN m.found IS NULL AND m.tbl = 'signed' AND (m.due ->> 'expires_at')::bigint <
        extract (epoch FROM clock_timestamp ()) * 1000000 THEN NULL
    ELSE m.tbl || ' ' || (SELECT string_agg (v, ', ') FROM jsonb_array_elements_text (m.key) v) || CASE
        WHEN m.found IS NULL THEN ' is missing' WHEN m.due IS NULL THEN ' was made by no operation'
        ELSE (SELECT string_agg (format (': %%s is %%s, not %%s', f.key, f.value, coalesce (m.due ->> f.key, 'null')), ';')
            FROM jsonb_each_text (m.found) f WHERE f.value IS DISTINCT FROM m.due ->> f.key) END END AS why FROM met m)
SELECT 'rows of ' || j.tbl || ' are what the history says', count (*), count (j.why), min (j.why) FROM judged j GROUP BY j.tbl
UNION ALL (SELECT 'lines of the history tell of tables that there are', count (*),
    count (*) FILTER (WHERE n.tbl IS NULL OR n.tbl NOT IN (SELECT k.tbl FROM key k)),
    'block ' || min (n.block) FILTER (WHERE n.tbl IS NULL OR n.tbl NOT IN (SELECT k.tbl FROM key k)) FROM named n)
-- Nobody else may say what was there before.
UNION ALL (SELECT 'what was there before is told of after a migration only', count (*), count (*) FILTER (WHERE NOT fits),
    'block ' || min (block) FILTER (WHERE NOT fits) FROM (SELECT l.block, EXISTS (SELECT FROM schema_version v WHERE
        extract (epoch FROM v.applied_at) * 1000000 BETWEEN coalesce ((SELECT p.recorded_at FROM block p WHERE
        p.number = l.block - 1), 0) - 60000000 AND coalesce ((SELECT b.recorded_at FROM block b WHERE b.number = l.block),
        9000000000000000000) + 60000000) AS fits FROM line l WHERE l.j ? 'was' GROUP BY l.block) x)
UNION ALL SELECT 'no line waits for its block', count (*), CASE WHEN EXISTS (SELECT FROM change) THEN count (*) ELSE 0 END,
    'line ' || min (id) FROM unsealed
$q$, substr (keys, 11), substr (actual, 11)) USING shapes;
END $$;

-- The state of all objects as lines, whose Merkle root an operation of kind "state" records: what there is now, everything
-- but what has ended and stays as it was (jobs, quotes, rows of reconciliation). A line
-- is {"table":"account","id":4,…} as PostgreSQL writes jsonb. key: the primary key, "alpha/1"; name: what people call
-- it, or whose it is.
CREATE FUNCTION state_lines () RETURNS TABLE (tbl text, key text, name text, line text) LANGUAGE plpgsql STABLE
    SET search_path = bank, pg_catalog AS $$
DECLARE
    t    record;
    rows text := '';
BEGIN
    FOR t IN SELECT told, (SELECT string_agg (format ('t_row.%I', k), ', ') FROM unnest (key_of (told)) k) AS key,
            (SELECT format (CASE a.attname WHEN 'person_id' THEN '(SELECT x.identity FROM person x WHERE x.id = t_row.person_id)'
                WHEN 'account_id' THEN '(SELECT x.name FROM account x WHERE x.id = t_row.account_id)' ELSE 't_row.%I' END, a.attname)
                FROM pg_attribute a WHERE a.attrelid = ('bank.' || quote_ident (told))::regclass AND NOT a.attisdropped AND
                a.attname IN ('name', 'identity', 'person_id', 'account_id')
                ORDER BY array_position (ARRAY['name', 'identity', 'person_id', 'account_id']::name[], a.attname) LIMIT 1) AS name
            FROM told_tables () told WHERE told <> ALL (ARRAY['usage', 'charge', 'charge_leg', 'refund_leg', 'signed', 'quote',
            'quote_card', 'quote_use', 'quote_cancel', 'recon_row', 'recon_event']) LOOP
        rows := rows || format ('UNION ALL SELECT %1$L, concat_ws (''/'', %2$s), coalesce (%3$s, '''')::text, '
            '(jsonb_build_object (''table'', %1$L) || to_jsonb (t_row))::text FROM bank.%1$I t_row %4$s ', t.told, t.key,
            coalesce (t.name, ''''''), CASE t.told WHEN 'hold' THEN 'WHERE t_row.open'
            WHEN 'hold_leg' THEN 'WHERE EXISTS (SELECT FROM bank.hold h WHERE h.id = t_row.hold_id AND h.open)' ELSE '' END);
    END LOOP;
    RETURN QUERY EXECUTE 'SELECT * FROM (' || substr (rows, 11) || ') x (tbl, key, name, line) ORDER BY line COLLATE "C"';
END $$;

-- As proto/audit/merkle.h: a node is the hash of the mark 1 and both below it; what is alone goes up as it is.
CREATE FUNCTION merkle_root (leaf bytea[]) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF coalesce (cardinality (leaf), 0) = 0 THEN
        RETURN sha256 ('');
    END IF;
    WHILE cardinality (leaf) > 1 LOOP
        SELECT array_agg (h ORDER BY at) INTO leaf FROM (SELECT (n - 1) / 2 AS at, CASE count (*) WHEN 2 THEN
            sha256 ('\x01'::bytea || string_agg (l, '' ORDER BY n)) ELSE string_agg (l, '') END AS h
            FROM unnest (leaf) WITH ORDINALITY u (l, n) GROUP BY (n - 1) / 2) x;
    END LOOP;
    RETURN leaf[1];
END $$;

-- As audit_line_leaf: the mark 0, "nui-row-v1" and the line, each after its length.
CREATE FUNCTION line_leaf (line text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256 ('\x00'::bytea || int8send (10) || 'nui-row-v1'::bytea || int8send (octet_length (convert_to (line, 'UTF8'))) ||
        convert_to (line, 'UTF8')) $$;

-- What a column has that no line names, as history_check has it.
CREATE FUNCTION column_defaults (tbl text) RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path = bank, pg_catalog AS $$
DECLARE
    out jsonb;
BEGIN
    EXECUTE format ('SELECT jsonb_build_object (%s)', (SELECT string_agg (format ('%L, %s', a.attname,
        coalesce (pg_get_expr (d.adbin, d.adrelid), 'NULL')), ', ') FROM pg_attribute a LEFT JOIN pg_attrdef d ON
        d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = ('bank.' || quote_ident (tbl))::regclass AND
        a.attnum > 0 AND NOT a.attisdropped)) INTO out;
    RETURN out;
END $$;

-- Goes through the blocks once, with the rows of all objects at hand (as state_lines has them), and stops where a state
-- was recorded. A table that has columns since, or is new since, had others then: states of before the newest migration
-- are left out. shapes: see history_check.
CREATE FUNCTION state_check (shapes text) RETURNS TABLE (rule text, checked bigint, broken bigint, example text)
    LANGUAGE plpgsql STABLE SET search_path = bank, pg_catalog AS $$
DECLARE
    s     record;
    d     record;
    keys  jsonb;   -- of each table: its key's columns, and what columns have that no line names
    shape jsonb;   -- of each statement of the service's own: its table and columns
    held  jsonb := '{}'; -- what there is, by table and key
    upto  bigint := -1;
    root  text;
    lines bigint;
BEGIN
    rule := 'states that were recorded are what the history says';
    checked := 0;
    broken := 0;
    SELECT jsonb_object_agg (told, jsonb_build_object ('key', key_of (told), 'defaults', column_defaults (told))) INTO keys
        FROM told_tables () told WHERE told <> ALL (ARRAY['usage', 'charge', 'charge_leg', 'refund_leg', 'signed', 'quote',
        'quote_card', 'quote_use', 'quote_cancel', 'recon_row', 'recon_event']);
    SELECT jsonb_object_agg (p[1], jsonb_build_object ('table', p[2], 'cols', p[3:])) INTO shape FROM
        (SELECT string_to_array (translate (x, '?', ''), ' ') AS p FROM string_to_table (shapes, E'\n') x WHERE x <> '') y;
    FOR s IN SELECT o.id, (regexp_match (o.note, 'root=([0-9a-f]{64}) '))[1] AS root, (regexp_match (o.note, ' rows=(\d+) '))[1]::bigint
            AS rows, (regexp_match (o.note, ' block=(\d+)$'))[1]::bigint AS block FROM op o WHERE o.kind = 'state' AND o.status = 0
            AND o.recorded_at > (SELECT extract (epoch FROM max (v.applied_at)) * 1000000 FROM schema_version v)
            ORDER BY 4, o.id LOOP
        checked := checked + 1;
        -- Lines between two that drop rows are taken together. Those of a migration are in the block after it.
        FOR d IN WITH line AS MATERIALIZED (SELECT b.number, l.n, l.line::jsonb AS j FROM block b LEFT JOIN change c ON
                    c.block = b.number CROSS JOIN LATERAL string_to_table (concat_ws (E'\n', nullif (c.objects, ''),
                    nullif (b.rows, '')), E'\n') WITH ORDINALITY l (line, n) WHERE b.number BETWEEN upto AND s.block + 1),
                due AS (SELECT number, n, j, j ->> 'drop' AS dropped FROM line WHERE
                    number - (j ? 'was')::int BETWEEN upto + 1 AND s.block),
                named AS (SELECT number, n, dropped, coalesce (j ->> 'add', j ->> 'put', j ->> 'was', j ->> 'drop') AS tbl,
                    j - ARRAY['add', 'put', 'was', 'drop'] AS cols FROM due WHERE jsonb_typeof (j) = 'object'
                    UNION ALL SELECT number, n, NULL, shape -> (j ->> 0) ->> 'table', (SELECT jsonb_object_agg (
                    shape -> (j ->> 0) -> 'cols' ->> (e.n - 2)::int, e.v) FROM jsonb_array_elements (j) WITH ORDINALITY e (v, n)
                    WHERE e.n > 1) FROM due WHERE jsonb_typeof (j) = 'array'),
                part AS (SELECT *, count (dropped) OVER (ORDER BY number, n) AS seg FROM named WHERE keys ? tbl),
                made AS (SELECT seg, tbl, concat_ws (' ', tbl, (SELECT jsonb_agg (cols -> c ORDER BY i) FROM
                    jsonb_array_elements_text (keys -> tbl -> 'key') WITH ORDINALITY u (c, i))) AS key,
                    jsonb_over (cols ORDER BY number, n) AS cols FROM part WHERE dropped IS NULL GROUP BY 1, 2, 3)
                SELECT p.seg, max (p.dropped) AS dropped, (SELECT x.cols FROM part x WHERE x.seg = p.seg AND x.dropped IS NOT NULL)
                    AS dropping, (SELECT jsonb_object_agg (m.key, jsonb_build_array (m.tbl, m.cols)) FROM made m WHERE
                    m.seg = p.seg) AS made FROM part p GROUP BY p.seg ORDER BY p.seg LOOP
            IF d.dropped IS NOT NULL THEN
                SELECT coalesce (jsonb_object_agg (h.key, h.value), '{}') INTO held FROM jsonb_each (held) h WHERE NOT
                    (starts_with (h.key, d.dropped || ' ') AND h.value @> d.dropping);
            END IF;
            held := held || coalesce ((SELECT jsonb_object_agg (m.key, coalesce (held -> m.key, keys -> (m.value ->> 0) ->
                'defaults') || (m.value -> 1)) FROM jsonb_each (d.made) m), '{}');
        END LOOP;
        upto := greatest (upto, s.block);
        -- Holds that have ended stay as they were.
        SELECT coalesce (jsonb_object_agg (h.key, h.value), '{}') INTO held FROM jsonb_each (held) h WHERE NOT
            (starts_with (h.key, 'hold ') AND NOT (h.value ->> 'open')::boolean) AND NOT (starts_with (h.key, 'hold_leg ') AND
            NOT coalesce ((held -> format ('hold [%s]', h.value ->> 'hold_id') ->> 'open')::boolean, false));
        SELECT encode (merkle_root (array_agg (line_leaf (x.line) ORDER BY x.line COLLATE "C")), 'hex'), count (*) INTO root, lines
            FROM (SELECT (jsonb_build_object ('table', split_part (h.key, ' ', 1)) || h.value)::text AS line FROM
            jsonb_each (held) h) x;
        IF root IS DISTINCT FROM s.root OR lines IS DISTINCT FROM s.rows THEN
            broken := broken + 1;
            example := coalesce (example, format ('op.%s: block %s has %s rows with the root %s', s.id, s.block, lines, root));
        END IF;
    END LOOP;
    RETURN NEXT;
END $$;

SELECT tell_again (t) FROM told_tables () t ORDER BY t;
