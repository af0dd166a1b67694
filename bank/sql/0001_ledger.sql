-- 0001: the ledger.
--
-- Amounts are BIGINT micro-credits, moments BIGINT microseconds since 1970 UTC. Ids are given out by
-- the one committer (nui-bank holds an advisory lock while it is connected), so they have no gaps.
-- Rows of op, entry, charge, charge_leg and rate are never changed: triggers refuse it.

CREATE TABLE unit (
    id    smallint PRIMARY KEY,
    code  text NOT NULL UNIQUE,
    scale smallint NOT NULL CHECK (scale BETWEEN 0 AND 9)
);
INSERT INTO unit VALUES (1, 'credit', 6);

-- Every operation that was decided, refused ones too: who asked, its idempotency key, the SHA-256 of
-- its canonical request and the answer that was given.
CREATE TABLE op (
    id           bigint PRIMARY KEY,
    client       text COLLATE "C" NOT NULL,
    key          bytea NOT NULL CHECK (octet_length (key) = 16),
    hash         bytea NOT NULL CHECK (octet_length (hash) = 32),
    kind         text COLLATE "C" NOT NULL,
    on_behalf    text COLLATE "C" NOT NULL, -- the identity that signed, or the client's
    site         text COLLATE "C" NOT NULL,
    job          text COLLATE "C" NOT NULL,
    note         text NOT NULL,             -- a description, or a price with its numbers
    effective_at bigint NOT NULL,
    recorded_at  bigint NOT NULL,
    status       smallint NOT NULL,         -- 0, or a negative code of proto/base/err.h
    outcome      bytea NOT NULL,            -- the reply as sent, or the sentence of a refusal
    UNIQUE (client, key)
);
CREATE INDEX op_recorded_at ON op (recorded_at);

CREATE TABLE project (
    id          bigint PRIMARY KEY,
    name        text COLLATE "C" NOT NULL UNIQUE,
    description text NOT NULL,
    op_id       bigint NOT NULL REFERENCES op
);

CREATE TABLE person (
    id       bigint PRIMARY KEY,
    identity text COLLATE "C" NOT NULL UNIQUE,
    op_id    bigint NOT NULL REFERENCES op
);

CREATE TABLE membership (
    id         bigint PRIMARY KEY,
    project_id bigint NOT NULL REFERENCES project,
    person_id  bigint NOT NULL REFERENCES person,
    role       text COLLATE "C" NOT NULL CHECK (role IN ('member', 'lead')),
    valid_from bigint NOT NULL,
    valid_to   bigint NOT NULL CHECK (valid_to >= valid_from),
    op_id      bigint NOT NULL REFERENCES op
);
CREATE UNIQUE INDEX membership_current ON membership (person_id, project_id)
    WHERE valid_to = 9223372036854775807;
CREATE INDEX membership_person ON membership (person_id);
CREATE INDEX membership_project ON membership (project_id);

CREATE TABLE account (
    id         bigint PRIMARY KEY,
    name       text COLLATE "C" NOT NULL UNIQUE,
    class      text COLLATE "C" NOT NULL CHECK (class IN
        ('PROJECT', 'GRANT_SOURCE', 'SITE_EARNED', 'EXPIRED', 'DEBT', 'SUSPENSE')),
    project_id bigint REFERENCES project,
    unit_id    smallint NOT NULL REFERENCES unit,
    op_id      bigint REFERENCES op, -- NULL: made by a migration
    CHECK ((class = 'PROJECT') = (project_id IS NOT NULL))
);
CREATE INDEX account_project ON account (project_id);

CREATE TABLE account_fallback (
    account_id  bigint NOT NULL REFERENCES account,
    position    smallint NOT NULL,
    fallback_id bigint NOT NULL REFERENCES account,
    PRIMARY KEY (account_id, position),
    UNIQUE (account_id, fallback_id),
    CHECK (account_id <> fallback_id)
);

-- What was granted to an account for [valid_from, valid_to). System accounts have one without end.
CREATE TABLE allocation (
    id           bigint PRIMARY KEY,
    account_id   bigint NOT NULL REFERENCES account,
    valid_from   bigint NOT NULL,
    valid_to     bigint NOT NULL,
    credit_limit bigint NOT NULL DEFAULT 0 CHECK (credit_limit >= 0),
    description  text NOT NULL,
    op_id        bigint REFERENCES op,
    CHECK (valid_from < valid_to)
);
CREATE INDEX allocation_account ON allocation (account_id);

-- Where a project's allocation stands: posted and held are the sums of its entries in each layer.
-- System allocations have no row: a row that every job changes would make all of them wait for
-- one another; their balance is the sum of their entries.
CREATE TABLE balance (
    allocation_id bigint PRIMARY KEY REFERENCES allocation,
    granted       bigint NOT NULL CHECK (granted >= 0),
    settled       bigint NOT NULL CHECK (settled >= 0),
    posted        bigint NOT NULL,
    held          bigint NOT NULL CHECK (held >= 0)
) WITH (fillfactor = 40);

-- Prices per site; the one in force at a moment is the highest version with valid_from at or before it.
CREATE TABLE rate (
    site           text COLLATE "C" NOT NULL,
    version        integer NOT NULL CHECK (version > 0),
    valid_from     bigint NOT NULL,
    multiplier_ppm bigint NOT NULL CHECK (multiplier_ppm >= 0),
    op_id          bigint NOT NULL REFERENCES op,
    PRIMARY KEY (site, version)
);

-- The tables that every job writes (hold to entry) name rows of others without foreign keys: each
-- would be a query and a row lock per row written, on rows that the committer has just read in the
-- same transaction and that nothing ever deletes. The store's tests prove that no reference dangles.

CREATE TABLE hold (
    id           bigint PRIMARY KEY,
    op_id        bigint NOT NULL,
    site         text COLLATE "C" NOT NULL,
    site_job     text COLLATE "C" NOT NULL,
    component    text COLLATE "C" NOT NULL,
    incarnation  bigint NOT NULL,
    grid_job     text COLLATE "C" NOT NULL,
    asked_id     bigint NOT NULL, -- the account that the job names
    account_id   bigint NOT NULL, -- the account that pays
    identity     text COLLATE "C" NOT NULL,
    procs        bigint NOT NULL,
    walltime_us  bigint NOT NULL,
    start_at     bigint NOT NULL,
    expires_at   bigint NOT NULL,
    rate_version integer NOT NULL, -- pinned: the charge uses it
    rate_ppm     bigint NOT NULL,
    amount       bigint NOT NULL CHECK (amount >= 0),
    open         boolean NOT NULL
) WITH (fillfactor = 70);
-- One open hold per job incarnation.
CREATE UNIQUE INDEX hold_incarnation ON hold (site, site_job, component, incarnation) WHERE open;
CREATE INDEX hold_open_account ON hold (account_id) WHERE open;

CREATE TABLE hold_leg (
    hold_id       bigint NOT NULL,
    leg           smallint NOT NULL,
    allocation_id bigint NOT NULL,
    amount        bigint NOT NULL CHECK (amount >= 0),
    settled       bigint NOT NULL CHECK (settled >= 0),
    released      bigint NOT NULL CHECK (released >= 0),
    PRIMARY KEY (hold_id, leg),
    CHECK (settled + released <= amount)
) WITH (fillfactor = 70);

-- One row per job incarnation: what it has used and what was charged for it so far.
CREATE TABLE usage (
    id          bigint PRIMARY KEY,
    site        text COLLATE "C" NOT NULL,
    site_job    text COLLATE "C" NOT NULL,
    component   text COLLATE "C" NOT NULL,
    incarnation bigint NOT NULL,
    grid_job    text COLLATE "C" NOT NULL,
    hold_id     bigint,
    account_id  bigint NOT NULL,
    identity    text COLLATE "C" NOT NULL,
    procs       bigint NOT NULL,
    start_at    bigint NOT NULL,
    end_at      bigint NOT NULL,
    total       bigint NOT NULL CHECK (total >= 0),
    final       boolean NOT NULL,
    UNIQUE (site, site_job, component, incarnation)
) WITH (fillfactor = 70);

CREATE TABLE charge (
    id           bigint PRIMARY KEY,
    op_id        bigint NOT NULL,
    usage_id     bigint NOT NULL,
    hold_id      bigint, -- NULL: unheld
    sequence     bigint NOT NULL,
    procs        bigint NOT NULL,
    start_at     bigint NOT NULL,
    end_at       bigint NOT NULL,
    final        boolean NOT NULL,
    successful   boolean NOT NULL,
    rate_version integer NOT NULL,       -- 0: no rate was known
    rate_ppm     bigint NOT NULL,
    amount       bigint NOT NULL CHECK (amount >= 0),
    total        bigint NOT NULL,
    released     bigint NOT NULL CHECK (released >= 0),
    formula      text NOT NULL
);
CREATE INDEX charge_usage ON charge (usage_id);

CREATE TABLE charge_leg (
    charge_id     bigint NOT NULL,
    leg           smallint NOT NULL,
    allocation_id bigint NOT NULL,
    amount        bigint NOT NULL CHECK (amount > 0),
    source        text COLLATE "C" NOT NULL CHECK (source IN
        ('HELD', 'AVAILABLE', 'CREDIT', 'OVERRUN', 'SUSPENSE')),
    PRIMARY KEY (charge_id, leg)
);

-- The journal. layer 'P' is what is posted, 'H' what is held.
CREATE TABLE entry (
    op_id         bigint NOT NULL,
    leg           smallint NOT NULL,
    layer         "char" NOT NULL CHECK (layer IN ('P', 'H')),
    unit_id       smallint NOT NULL,
    account_id    bigint NOT NULL,
    allocation_id bigint NOT NULL,
    amount        bigint NOT NULL CHECK (amount <> 0),
    effective_at  bigint NOT NULL,
    recorded_at   bigint NOT NULL,
    PRIMARY KEY (op_id, leg)
);
CREATE INDEX entry_account ON entry (account_id, recorded_at);

-- How far each site's outbox has arrived: everything up to acked, and these beyond it.
CREATE TABLE site_ack (
    site  text COLLATE "C" PRIMARY KEY,
    acked bigint NOT NULL CHECK (acked >= 0),
    ahead text COLLATE "C" NOT NULL -- "7,9,12"
) WITH (fillfactor = 40);

INSERT INTO account (id, name, class, project_id, unit_id) VALUES
    (1, 'bank:grants', 'GRANT_SOURCE', NULL, 1),
    (2, 'bank:suspense', 'SUSPENSE', NULL, 1),
    (3, 'bank:sites', 'SITE_EARNED', NULL, 1); -- of sites that have no rate yet
INSERT INTO allocation (id, account_id, valid_from, valid_to, description) VALUES
    (1, 1, 0, 9223372036854775807, 'where grants come from'),
    (2, 2, 0, 9223372036854775807, 'charges that no account could be found for'),
    (3, 3, 0, 9223372036854775807, 'earned by sites without a rate');

CREATE FUNCTION refuse_change () RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on %: rows of this table are never changed; corrections are new operations',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER op_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON op
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
CREATE TRIGGER entry_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON entry
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
CREATE TRIGGER charge_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON charge
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
CREATE TRIGGER charge_leg_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON charge_leg
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
CREATE TRIGGER rate_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON rate
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();

-- Entries of one statement must sum to zero per (op, unit, layer). Checked per statement, not at
-- commit: it is stricter (no later statement can repair it, none can unbalance an older op) and
-- costs one pass over the new rows instead of one query per row.
CREATE FUNCTION entry_zero_sum () RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    bad record;
BEGIN
    SELECT op_id, unit_id, layer, sum (amount) AS off INTO bad
        FROM fresh GROUP BY op_id, unit_id, layer HAVING sum (amount) <> 0 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'entries of op % do not sum to zero in unit %, layer %: off by %',
            bad.op_id, bad.unit_id, bad.layer, bad.off USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER entry_sums AFTER INSERT ON entry REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION entry_zero_sum ();
