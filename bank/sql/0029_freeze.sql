-- 0029: what is frozen: it pays for no new hold. The newest row of a thing is in force.

CREATE TABLE freezing (
    op_id     bigint PRIMARY KEY REFERENCES op,
    what      text COLLATE "C" NOT NULL CHECK (what IN ('user', 'account', 'project', 'grant')),
    object_id bigint NOT NULL,
    name      text COLLATE "C" NOT NULL, -- of the thing then
    frozen    boolean NOT NULL,
    reason    text NOT NULL,
    who       text COLLATE "C" NOT NULL,
    since     bigint NOT NULL
);
CREATE INDEX freezing_object ON freezing (what, object_id, op_id);
CREATE TRIGGER freezing_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON freezing
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();

CREATE VIEW freeze_now AS SELECT * FROM (SELECT DISTINCT ON (what, object_id) * FROM freezing
    ORDER BY what, object_id, op_id DESC) newest WHERE frozen;

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
