-- 0007: funders and their grants, projects as a tree, what accounts and allocations are for, debts of
-- projects, accounts that are closed, fallbacks per site with their QoS, roles of people, holds that
-- were made longer.

CREATE TABLE funder (
    id          bigint PRIMARY KEY,
    name        text COLLATE "C" NOT NULL UNIQUE,
    description text NOT NULL,
    op_id       bigint NOT NULL REFERENCES op
);

CREATE TABLE award (
    id         bigint PRIMARY KEY,
    funder_id  bigint NOT NULL REFERENCES funder,
    account_id bigint NOT NULL REFERENCES account, -- that it was first given to
    reference  text NOT NULL,
    op_id      bigint NOT NULL REFERENCES op
);
CREATE INDEX award_funder ON award (funder_id);

ALTER TABLE allocation ADD COLUMN award_id bigint REFERENCES award; -- kept by all that is split off
CREATE INDEX allocation_award ON allocation (award_id) WHERE award_id IS NOT NULL;

ALTER TABLE project ADD COLUMN parent_id bigint REFERENCES project CHECK (parent_id <> id);

-- What a project owes: one account of class DEBT, made when it first does.
ALTER TABLE account DROP CONSTRAINT account_check;
ALTER TABLE account ADD CONSTRAINT account_check
    CHECK ((class IN ('PROJECT', 'DEBT')) = (project_id IS NOT NULL));
CREATE UNIQUE INDEX account_debt ON account (project_id) WHERE class = 'DEBT';
ALTER TABLE account ADD COLUMN closed_op bigint REFERENCES op;

-- Whom and what an account or an allocation is for.
CREATE TABLE account_scope (
    account_id bigint NOT NULL REFERENCES account,
    position   smallint NOT NULL,
    kind       text COLLATE "C" NOT NULL CHECK (kind = 'user'),
    name       text COLLATE "C" NOT NULL,
    exclude    boolean NOT NULL,
    PRIMARY KEY (account_id, position),
    UNIQUE (account_id, kind, name)
);
CREATE TABLE allocation_scope (
    allocation_id bigint NOT NULL REFERENCES allocation,
    position      smallint NOT NULL,
    kind          text COLLATE "C" NOT NULL CHECK (kind IN ('user', 'site', 'machine', 'qos')),
    name          text COLLATE "C" NOT NULL,
    exclude       boolean NOT NULL,
    PRIMARY KEY (allocation_id, position),
    UNIQUE (allocation_id, kind, name)
);
CREATE TRIGGER allocation_scope_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON allocation_scope
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();

-- At one site ('': at sites that have no list of their own), with another QoS ('': the job's).
ALTER TABLE account_fallback ADD COLUMN site text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE account_fallback ADD COLUMN qos text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE account_fallback DROP CONSTRAINT account_fallback_account_id_fallback_id_key;
ALTER TABLE account_fallback ADD UNIQUE (account_id, site, fallback_id);

-- What people may do for the whole bank. The newest row of a person and role is in force.
CREATE TABLE bank_role (
    op_id     bigint PRIMARY KEY REFERENCES op,
    person_id bigint NOT NULL REFERENCES person,
    role      text COLLATE "C" NOT NULL CHECK (role IN ('manager', 'auditor')),
    granted   boolean NOT NULL
);
CREATE INDEX bank_role_person ON bank_role (person_id, role, op_id);
CREATE TRIGGER bank_role_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON bank_role
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
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

ALTER TABLE hold ADD COLUMN qos text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE hold ADD COLUMN machine text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX hold_open_expiry ON hold (expires_at) WHERE open;

-- The last ones are for reading.
CREATE FUNCTION leads_above (person bigint, project bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM bank.membership m WHERE m.person_id = person AND m.role = 'lead' AND
        m.valid_to = 9223372036854775807 AND m.project_id = ANY (string_to_array (
        bank.project_ancestors (project), ',')::bigint[])) $$;
ALTER TABLE usage ADD COLUMN qos text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE usage ADD COLUMN machine text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX charge_end ON charge USING brin (end_at);
