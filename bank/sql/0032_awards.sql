-- 0032: what becomes of grants, splits, names and places of accounts: each is an operation that a statement shows.

ALTER TABLE allocation
    ADD COLUMN split_from bigint REFERENCES allocation, -- who gives from there may take it back
    ADD COLUMN reference text NOT NULL DEFAULT '';      -- of a deposit; a grant's is its award's
ALTER TABLE award ADD COLUMN revoked_op bigint REFERENCES op;

-- What an operation concerns whether or not it moves credits there.
CREATE TABLE about (
    op_id     bigint NOT NULL REFERENCES op,
    what      text COLLATE "C" NOT NULL CHECK (what IN ('account', 'project', 'grant')),
    object_id bigint NOT NULL,
    PRIMARY KEY (op_id, what, object_id)
);
CREATE INDEX about_object ON about (what, object_id, op_id);
CREATE TRIGGER about_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON about
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();

-- Names that accounts had before. They go on meaning the account, so that no other one ever has them.
CREATE TABLE account_name (
    account_id bigint NOT NULL REFERENCES account,
    op_id      bigint NOT NULL REFERENCES op, -- that renamed it
    name       text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, op_id)
);
CREATE INDEX account_name_name ON account_name (name);
CREATE TRIGGER account_name_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON account_name
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();

CREATE FUNCTION account_named (asked text) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce ((SELECT a.id FROM bank.account a WHERE a.name = asked),
        (SELECT n.account_id FROM bank.account_name n WHERE n.name = asked LIMIT 1)) $$;

-- How deep the projects below one go.
CREATE FUNCTION project_height (project bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    WITH RECURSIVE down (id, depth) AS (
        SELECT project, 0 UNION ALL SELECT p.id, d.depth + 1 FROM down d JOIN bank.project p ON p.parent_id = d.id
            WHERE d.depth < 16)
    SELECT max (depth)::bigint FROM down $$;
