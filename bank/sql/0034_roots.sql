-- 0034: the roots that operations of kind "state" recorded are recomputed from the lines of the blocks before them.

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
