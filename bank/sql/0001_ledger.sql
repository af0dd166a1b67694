-- 0001: the ledger's tables, and what they refuse.
--
-- Amounts are BIGINT micro-credits, moments BIGINT microseconds since 1970 UTC. Ids are given out by
-- the one committer (nui-bank holds an advisory lock while it is connected), so they have no gaps;
-- rows that this file or later ones add have ids below zero, or 1 to 3.

-- What a column of the tables that every job writes may hold is said by its type. A table's CHECK is parsed anew
-- for every statement that writes to the table (13,000 instructions each, 32 times for a lone hold and its charge), a
-- domain's once per connection. What compares two columns stays a CHECK.
CREATE DOMAIN bytes16 AS bytea CHECK (octet_length (VALUE) = 16);
CREATE DOMAIN bytes32 AS bytea CHECK (octet_length (VALUE) = 32);
CREATE DOMAIN positive AS bigint CHECK (VALUE > 0);
CREATE DOMAIN not_negative AS bigint CHECK (VALUE >= 0);
CREATE DOMAIN not_zero AS bigint CHECK (VALUE <> 0);
CREATE DOMAIN entry_layer AS "char" CHECK (VALUE IN ('P', 'H'));
CREATE DOMAIN leg_source AS text COLLATE "C" CHECK
    (VALUE IN ('HELD', 'AVAILABLE', 'CREDIT', 'OVERRUN', 'SUSPENSE', 'DISPUTED'));

CREATE TABLE unit (
    id    smallint PRIMARY KEY,
    code  text NOT NULL UNIQUE,
    scale smallint NOT NULL CHECK (scale BETWEEN 0 AND 9)
);

-- Every operation that was decided, refused ones too: who asked, its idempotency key, the SHA-256 of
-- its canonical request and the answer that was given.
CREATE TABLE op (
    id           bigint PRIMARY KEY,
    client       text COLLATE "C" NOT NULL,
    key          bytes16 NOT NULL,
    hash         bytes32 NOT NULL,
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

-- Projects are a tree.
CREATE TABLE project (
    id          bigint PRIMARY KEY,
    name        text COLLATE "C" NOT NULL UNIQUE,
    description text NOT NULL,
    op_id       bigint NOT NULL REFERENCES op,
    parent_id   bigint REFERENCES project CHECK (parent_id <> id)
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

-- What people may do for the whole bank. The newest row of a person and role is in force.
CREATE TABLE bank_role (
    op_id     bigint PRIMARY KEY REFERENCES op,
    person_id bigint NOT NULL REFERENCES person,
    role      text COLLATE "C" NOT NULL CHECK (role IN ('manager', 'auditor')),
    granted   boolean NOT NULL
);
CREATE INDEX bank_role_person ON bank_role (person_id, role, op_id);

CREATE TABLE account (
    id         bigint PRIMARY KEY,
    name       text COLLATE "C" NOT NULL UNIQUE,
    class      text COLLATE "C" NOT NULL CHECK (class IN
        ('PROJECT', 'GRANT_SOURCE', 'SITE_EARNED', 'EXPIRED', 'DEBT', 'SUSPENSE')),
    project_id bigint REFERENCES project,
    unit_id    smallint NOT NULL REFERENCES unit,
    op_id      bigint REFERENCES op, -- NULL: made by this file
    closed_op  bigint REFERENCES op,
    CHECK ((class IN ('PROJECT', 'DEBT')) = (project_id IS NOT NULL))
);
CREATE INDEX account_project ON account (project_id);
-- What a project owes: one account of class DEBT, made when it first does.
CREATE UNIQUE INDEX account_debt ON account (project_id) WHERE class = 'DEBT';

-- Names that accounts had before. They go on meaning the account, so that no other one ever has them.
CREATE TABLE account_name (
    account_id bigint NOT NULL REFERENCES account,
    op_id      bigint NOT NULL REFERENCES op, -- that renamed it
    name       text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, op_id)
);
CREATE INDEX account_name_name ON account_name (name);

-- Who pays where this account cannot: at one site ('': at sites that have no list of their own), with another QoS
-- ('': the job's).
CREATE TABLE account_fallback (
    account_id  bigint NOT NULL REFERENCES account,
    position    smallint NOT NULL,
    fallback_id bigint NOT NULL REFERENCES account,
    site        text COLLATE "C" NOT NULL DEFAULT '',
    qos         text COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, position),
    UNIQUE (account_id, site, fallback_id),
    CHECK (account_id <> fallback_id)
);

CREATE TABLE funder (
    id          bigint PRIMARY KEY,
    name        text COLLATE "C" NOT NULL UNIQUE,
    description text NOT NULL,
    op_id       bigint NOT NULL REFERENCES op
);

-- A funder's grant.
CREATE TABLE award (
    id         bigint PRIMARY KEY,
    funder_id  bigint NOT NULL REFERENCES funder,
    account_id bigint NOT NULL REFERENCES account, -- that it was first given to
    reference  text NOT NULL,
    op_id      bigint NOT NULL REFERENCES op,
    revoked_op bigint REFERENCES op
);
CREATE INDEX award_funder ON award (funder_id);

-- What was granted to an account for [valid_from, valid_to). System accounts have one without end. What it still has
-- when it ends goes to bank:expired, by an entry dated its end.
CREATE TABLE allocation (
    id           bigint PRIMARY KEY,
    account_id   bigint NOT NULL REFERENCES account,
    valid_from   bigint NOT NULL,
    valid_to     bigint NOT NULL,
    credit_limit bigint NOT NULL DEFAULT 0 CHECK (credit_limit >= 0),
    description  text NOT NULL,
    op_id        bigint REFERENCES op,
    award_id     bigint REFERENCES award,      -- kept by all that is split off
    split_from   bigint REFERENCES allocation, -- who gives from there may take it back
    reference    text NOT NULL DEFAULT '',     -- of a deposit; a grant's is its award's
    CHECK (valid_from < valid_to)
);
CREATE INDEX allocation_account ON allocation (account_id);
CREATE INDEX allocation_award ON allocation (award_id) WHERE award_id IS NOT NULL;
-- Those that begin after they were made, and those that end, are looked for by when they do.
CREATE INDEX allocation_valid_from ON allocation (valid_from);
CREATE INDEX allocation_valid_to ON allocation (valid_to) WHERE valid_to < 9223372036854775807;

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

-- Where a project's allocation stands: posted and held are the sums of its entries in each layer.
-- System allocations have no row: a row that every job changes would make all of them wait for
-- one another; their balance is the sum of their entries.
--
-- granted may be below zero: an allocation may give away more than was granted to it. Credits of one that repaid the
-- overrun of another stay there when the overrun is refunded; when they then leave, what was granted to the second
-- becomes less than nothing, and what was granted to the first is as much more than it has. Sums over an account are right.
CREATE TABLE balance (
    allocation_id bigint PRIMARY KEY REFERENCES allocation,
    granted       bigint NOT NULL,
    settled       not_negative NOT NULL,
    posted        bigint NOT NULL,
    held          not_negative NOT NULL
) WITH (fillfactor = 40);

-- What an operation concerns whether or not it moves credits there: a statement shows it.
CREATE TABLE about (
    op_id     bigint NOT NULL REFERENCES op,
    what      text COLLATE "C" NOT NULL CHECK (what IN ('account', 'project', 'grant')),
    object_id bigint NOT NULL,
    PRIMARY KEY (op_id, what, object_id)
);
CREATE INDEX about_object ON about (what, object_id, op_id);

-- What is frozen: it pays for no new hold. The newest row of a thing is in force.
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
CREATE VIEW freeze_now AS SELECT * FROM (SELECT DISTINCT ON (what, object_id) * FROM freezing
    ORDER BY what, object_id, op_id DESC) newest WHERE frozen;

-- Rate cards: prices per site, what is measured and which jobs pay; the one in force at a moment is the highest version
-- with valid_from at or before it.
CREATE TABLE rate (
    site            text COLLATE "C" NOT NULL,
    version         integer NOT NULL CHECK (version > 0),
    valid_from      bigint NOT NULL,
    multiplier_ppm  bigint NOT NULL CHECK (multiplier_ppm >= 0),
    op_id           bigint NOT NULL REFERENCES op,
    measure         text COLLATE "C" NOT NULL DEFAULT 'wall' CHECK (measure IN ('wall', 'cpu', 'pe')),
    successful_only boolean NOT NULL DEFAULT false,
    PRIMARY KEY (site, version)
);

-- Rates per QoS, class, resource, time of day, machine and node type, and for co-reserved jobs.
CREATE TABLE rate_factor (
    site     text COLLATE "C" NOT NULL,
    version  integer NOT NULL,
    position smallint NOT NULL,
    kind     text COLLATE "C" NOT NULL CHECK (kind IN
        ('qos', 'class', 'gres', 'memory', 'group', 'time', 'machine', 'nodetype')),
    name     text COLLATE "C" NOT NULL,
    ppm      bigint NOT NULL CHECK (ppm >= 0),
    PRIMARY KEY (site, version, position),
    UNIQUE (site, version, kind, name),
    FOREIGN KEY (site, version) REFERENCES rate
);

-- What a site may do beyond settling its own jobs, and what bounds it beside what users signed: see nui-site(1). The
-- newest row of a site is in force. refunds: what jobs were charged that ended for the site's fault is given back, at
-- most what so much of a job's time cost, nothing below a minimum, nothing of jobs whose last charge came too late; 0:
-- no bound (rule R4).
CREATE TABLE site_right (
    site             text COLLATE "C" NOT NULL,
    op_id            bigint NOT NULL,
    claims           boolean NOT NULL, -- may name users and accounts of jobs that nobody signed
    refunds          boolean NOT NULL DEFAULT false,
    refund_cap_us    bigint NOT NULL DEFAULT 0 CHECK (refund_cap_us >= 0),
    refund_minimum   bigint NOT NULL DEFAULT 0 CHECK (refund_minimum >= 0),
    refund_window_us bigint NOT NULL DEFAULT 0 CHECK (refund_window_us >= 0),
    node_procs       bigint NOT NULL DEFAULT 0 CHECK (node_procs >= 0),
    proc_memory_mb   bigint NOT NULL DEFAULT 0 CHECK (proc_memory_mb >= 0),
    overrun_us       bigint NOT NULL DEFAULT 0 CHECK (overrun_us >= 0),
    PRIMARY KEY (site, op_id)
);

-- How far each site's outbox has arrived: everything up to acked, and these beyond it.
CREATE TABLE site_ack (
    site  text COLLATE "C" PRIMARY KEY,
    acked not_negative NOT NULL,
    ahead text COLLATE "C" NOT NULL -- "7,9,12"
) WITH (fillfactor = 40);

-- The tables that every job writes (hold to signed) name rows of others without foreign keys: each
-- would be a query and a row lock per row written (a tenth of what PostgreSQL does for a job), on rows that the
-- committer has just read in the same transaction and that nothing ever deletes. The store's tests prove that no
-- reference dangles.

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
    -- What its card said is pinned: the charge uses it.
    rate_version integer NOT NULL,
    rate_ppm     bigint NOT NULL,
    amount       not_negative NOT NULL,
    open         boolean NOT NULL,
    -- What memory and generic resources cost per second, in 1024ths of a millionth of a credit (memory is priced per
    -- 1024 MB): in whole millionths, rounded up, a charge would cost more than the card says.
    extra_parts  bigint NOT NULL DEFAULT 0,
    qos_ppm      bigint NOT NULL DEFAULT 1000000,
    class_ppm    bigint NOT NULL DEFAULT 1000000,
    group_ppm    bigint NOT NULL DEFAULT 1000000,
    pe_milli     bigint NOT NULL DEFAULT 0,
    qos          text COLLATE "C" NOT NULL DEFAULT '',
    machine      text COLLATE "C" NOT NULL DEFAULT '',
    nodes        text COLLATE "C" NOT NULL DEFAULT '', -- processors of each type: "fat=4 thin=12"
    -- What a user signed is kept with the hold, since charges and extensions carry no signature; what a site claims
    -- beyond it is disputed.
    walltime_max_us bigint NOT NULL DEFAULT 0, -- that was signed; 0: by nobody
    cost_max     bigint NOT NULL DEFAULT 0,    -- of all that the signed job is paid for; 0: no bound
    uuid         bytea NOT NULL DEFAULT ''     -- of the signed job
) WITH (fillfactor = 70);
-- One open hold per job incarnation.
CREATE UNIQUE INDEX hold_incarnation ON hold (site, site_job, component, incarnation) WHERE open;
-- These two must not serve a search by job, which PostgreSQL took them for while the table was small, reading one from
-- end to end for every job: their condition says more than "open" does.
CREATE INDEX hold_open_account ON hold (account_id) WHERE open AND account_id IS NOT NULL;
CREATE INDEX hold_open_expiry ON hold (expires_at) WHERE open AND expires_at IS NOT NULL;

-- Each leg is rewritten once, soon after it was written: half a page of room keeps that off the index (with 30 % of a
-- page, four in ten went through it: 37,000 instructions a leg, now 23,000).
CREATE TABLE hold_leg (
    hold_id       bigint NOT NULL,
    leg           smallint NOT NULL,
    allocation_id bigint NOT NULL,
    amount        not_negative NOT NULL,
    settled       not_negative NOT NULL,
    released      not_negative NOT NULL,
    PRIMARY KEY (hold_id, leg),
    CHECK (settled + released <= amount)
) WITH (fillfactor = 45);

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
    total       not_negative NOT NULL,
    final       boolean NOT NULL,
    qos         text COLLATE "C" NOT NULL DEFAULT '',
    machine     text COLLATE "C" NOT NULL DEFAULT '',
    disputed    not_negative NOT NULL DEFAULT 0, -- of total
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
    amount       not_negative NOT NULL,
    total        bigint NOT NULL,
    released     not_negative NOT NULL,
    formula      text NOT NULL,
    refund_due   boolean NOT NULL DEFAULT false, -- what was the policy when the job's last charge was recorded
    refund_most  not_negative                    -- of all charges of the job; NULL: all
);
CREATE INDEX charge_usage ON charge (usage_id);
CREATE UNIQUE INDEX charge_op ON charge (op_id);
CREATE INDEX charge_end ON charge USING brin (end_at);
CREATE INDEX charge_refund_due ON charge (op_id) WHERE refund_due;

CREATE TABLE charge_leg (
    charge_id     bigint NOT NULL,
    leg           smallint NOT NULL,
    allocation_id bigint NOT NULL,
    amount        positive NOT NULL,
    source        leg_source NOT NULL,
    PRIMARY KEY (charge_id, leg)
);

-- Refunds name the leg of the charge that they give back; never more than it took.
CREATE TABLE refund_leg (
    op_id         bigint NOT NULL,
    leg           smallint NOT NULL,
    charge_id     bigint NOT NULL,
    charge_leg    smallint NOT NULL,
    allocation_id bigint NOT NULL,
    amount        bigint NOT NULL CHECK (amount > 0),
    PRIMARY KEY (op_id, leg)
);
CREATE INDEX refund_leg_charge ON refund_leg (charge_id, charge_leg);

-- The journal. layer 'P' is what is posted, 'H' what is held. In partitions by operation, so that the indexes that are
-- written stay small and old parts can be vacuumed, backed up and moved to other disks by themselves. By operation, not
-- by month: a leg is then written once for certain (the key holds the partition's column), and operations are numbered
-- in the order of their times. op, hold and usage stay whole: keys and jobs are unique over all times.
CREATE TABLE entry (
    op_id         bigint NOT NULL,
    leg           smallint NOT NULL,
    layer         entry_layer NOT NULL,
    unit_id       smallint NOT NULL,
    account_id    bigint NOT NULL,
    allocation_id bigint NOT NULL,
    amount        not_zero NOT NULL,
    effective_at  bigint NOT NULL,
    recorded_at   bigint NOT NULL,
    PRIMARY KEY (op_id, leg)
) PARTITION BY RANGE (op_id);
CREATE INDEX entry_account ON entry (account_id, recorded_at);

-- Every hold of a signed job: which job of the grid, and of which metascheduler, it was paid for as. The same signed
-- job under another name is a replay, and the sum of what one signature pays for is bounded. A row must be remembered
-- until it expires: from then on nobody takes what was signed for the first time. A row may be of a run without a hold:
-- its hold_id is the usage's number, negative.
CREATE TABLE signed (
    identity   text COLLATE "C" NOT NULL,
    uuid       bytes16 NOT NULL,
    hash       bytes32 NOT NULL,          -- SHA-256 of what was signed
    grid_job   text COLLATE "C" NOT NULL,
    meta       text COLLATE "C" NOT NULL, -- '' where the site did not say
    part       text COLLATE "C" NOT NULL, -- the component, as it was signed
    hold_id    bigint NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (uuid, identity, hold_id)
);

-- Quotes that keep the rates of their sites for a user's job, and what was held or charged at them.
CREATE TABLE quote (
    id         bigint PRIMARY KEY,
    op_id      bigint NOT NULL,
    identity   text COLLATE "C" NOT NULL, -- whose jobs may have them
    expires_at bigint NOT NULL,
    reusable   boolean NOT NULL,          -- else for the first job that uses it
    account    text COLLATE "C"           -- asked for
);
CREATE INDEX quote_account ON quote (account, id);
CREATE INDEX quote_identity ON quote (identity, id);
CREATE INDEX quote_expires ON quote (expires_at);
CREATE TABLE quote_card (
    quote_id     bigint NOT NULL REFERENCES quote,
    position     smallint NOT NULL,
    site         text COLLATE "C" NOT NULL,
    rate_version integer NOT NULL,
    price        bigint CHECK (price >= 0), -- of what was asked for at its site
    PRIMARY KEY (quote_id, site),
    FOREIGN KEY (site, rate_version) REFERENCES rate
);
CREATE TABLE quote_use (
    op_id    bigint NOT NULL,
    quote_id bigint NOT NULL REFERENCES quote,
    job      text COLLATE "C" NOT NULL, -- its UUID, or its site's name for it
    PRIMARY KEY (op_id, quote_id)
);
CREATE INDEX quote_use_quote ON quote_use (quote_id, op_id);
CREATE TABLE quote_cancel (
    quote_id     bigint PRIMARY KEY REFERENCES quote,
    op_id        bigint NOT NULL,
    cancelled_at bigint NOT NULL -- no hold has its rates from then on
);

-- What reconciliation found. A row is opened once, has an owner when somebody takes it, and is closed by
-- an operation that put it right, by a word of explanation, or because it was not found again. Events are only
-- ever added.
CREATE TABLE recon_row (
    id          bigint PRIMARY KEY,
    op_id       bigint NOT NULL, -- that found it first
    site        text COLLATE "C" NOT NULL,
    class       text COLLATE "C" NOT NULL,
    site_job    text COLLATE "C" NOT NULL,
    component   text COLLATE "C" NOT NULL,
    incarnation bigint NOT NULL,
    hold        text COLLATE "C" NOT NULL,
    charge_op   bigint NOT NULL,
    identity    text COLLATE "C" NOT NULL,
    account     text COLLATE "C" NOT NULL,
    amount      bigint NOT NULL,
    site_ps     bigint NOT NULL, -- processor-microseconds, -1: that side has nothing
    bank_ps     bigint NOT NULL,
    since_at    bigint NOT NULL,
    note        text NOT NULL
);
CREATE INDEX recon_row_site ON recon_row (site, since_at);
CREATE TABLE recon_event (
    op_id     bigint NOT NULL,
    row_id    bigint NOT NULL REFERENCES recon_row,
    kind      text COLLATE "C" NOT NULL CHECK (kind IN ('owned', 'closed', 'gone')),
    owner     text COLLATE "C" NOT NULL,
    cured_op  bigint NOT NULL, -- the operation that put it right; 0: none
    note      text NOT NULL,
    PRIMARY KEY (row_id, op_id)
);
CREATE UNIQUE INDEX recon_event_end ON recon_event (row_id) WHERE kind IN ('closed', 'gone');

-- Sums of an account's entries up to a moment, so that a statement need not add up its whole past: what
-- stands in a row is what the entries recorded before it say (nui verify --rules adds them up). Made in the
-- background, of accounts that have had many entries since their last; nothing depends on there being one.
CREATE TABLE checkpoint (
    account_id bigint NOT NULL REFERENCES account (id),
    at         bigint NOT NULL, -- of all entries recorded before
    posted     bigint NOT NULL,
    held       bigint NOT NULL,
    entries    bigint NOT NULL CHECK (entries > 0),
    PRIMARY KEY (account_id, at)
);
-- Up to which operation accounts were looked at.
CREATE TABLE checkpoint_run (
    upto_op bigint PRIMARY KEY,
    at      bigint NOT NULL
);

-- Every transaction of the writer is a block: the Merkle root over its operations and lines (0003), chained to the
-- block before it and signed.
CREATE TABLE signer (
    id    bytea PRIMARY KEY CHECK (octet_length (id) = 32), -- SHA-256 of chain
    chain bytea NOT NULL                                    -- an Envelope with the certificates only
);
CREATE TABLE block (
    number      bigint PRIMARY KEY,
    first_op    bigint NOT NULL UNIQUE,
    ops         positive NOT NULL,
    recorded_at bigint NOT NULL,
    prev        bytes32 NOT NULL,
    root        bytes32 NOT NULL,
    signer      bytea NOT NULL,
    signature   bytea NOT NULL,
    rows        text NOT NULL DEFAULT '' -- lines of what the service itself wrote
);
-- Blocks' lines are text of a kind: lz4 makes a third of it in a third of the time that pglz takes (of 256 holds: 0.12 MB,
-- less than a millisecond). A PostgreSQL that was built without it keeps its own way.
DO $$ BEGIN
    ALTER TABLE bank.block ALTER rows SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END $$;
CREATE TABLE change (
    block   bigint PRIMARY KEY REFERENCES block DEFERRABLE INITIALLY DEFERRED,
    objects text NOT NULL -- lines
);
-- Lines that no block holds yet: of what these files wrote. The next block begins with them.
CREATE TABLE unsealed (
    id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    line text NOT NULL
);

-- What the keys are made from by which metaschedulers seal the hand-overs of jobs to sites (proto/job/handover.h). It is
-- in the database so that it is restored with the ledger; whoever reads it can seal in the name of every
-- metascheduler, so nobody but the service needs to. Another one ends all hand-overs: sites' holds are refused until
-- the metaschedulers have given them new ones. The text has 366 random bits, by PostgreSQL's strong generator.
CREATE TABLE handover (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    secret bytes32 NOT NULL
);
REVOKE ALL ON handover FROM PUBLIC;

-- Rows of these tables are never changed.
CREATE FUNCTION refuse_change () RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on %: rows of this table are never changed; corrections are new operations',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
DO $$
DECLARE
    tbl text;
BEGIN
    FOREACH tbl IN ARRAY ARRAY['about', 'account_name', 'allocation_scope', 'bank_role', 'block', 'change', 'charge',
            'charge_leg', 'checkpoint', 'checkpoint_run', 'entry', 'freezing', 'op', 'quote', 'quote_cancel', 'quote_card',
            'quote_use', 'rate', 'rate_factor', 'recon_event', 'recon_row', 'refund_leg', 'signer', 'site_right'] LOOP
        EXECUTE format ('CREATE TRIGGER %1$s_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON bank.%1$s '
            'FOR EACH STATEMENT EXECUTE FUNCTION bank.refuse_change ()', tbl);
    END LOOP;
END $$;
CREATE TRIGGER signed_fixed BEFORE UPDATE OR TRUNCATE ON signed FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();

CREATE FUNCTION signed_past () RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.expires_at >= extract (epoch FROM clock_timestamp ()) * 1000000 THEN
        RAISE EXCEPTION 'the signed job of hold % has not expired: its row guards against replays',
            OLD.hold_id USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER signed_past BEFORE DELETE ON signed FOR EACH ROW EXECUTE FUNCTION signed_past ();

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

-- entry_N ends with the operations of number N: each holds those of one.
CREATE FUNCTION entry_part (op bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT op >> 22 $$;

-- The first takes all that is below the second.
CREATE TABLE entry_0 (LIKE entry INCLUDING CONSTRAINTS);
CREATE INDEX entry_0_account ON entry_0 (account_id, recorded_at);
CREATE TRIGGER entry_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON entry_0
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
CREATE TRIGGER entry_sums AFTER INSERT ON entry_0 REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION entry_zero_sum ();
ALTER TABLE entry ATTACH PARTITION entry_0 FOR VALUES FROM (MINVALUE) TO (4194304);

INSERT INTO handover (secret) VALUES (sha256 (convert_to (
    gen_random_uuid ()::text || gen_random_uuid ()::text || gen_random_uuid ()::text, 'UTF8')));
INSERT INTO unit VALUES (1, 'credit', 6);
INSERT INTO account (id, name, class, project_id, unit_id) VALUES
    (1, 'bank:grants', 'GRANT_SOURCE', NULL, 1),
    (2, 'bank:suspense', 'SUSPENSE', NULL, 1),
    (3, 'bank:sites', 'SITE_EARNED', NULL, 1), -- of sites that have no rate yet
    (-1, 'bank:expired', 'EXPIRED', NULL, 1);
INSERT INTO allocation (id, account_id, valid_from, valid_to, description) VALUES
    (1, 1, 0, 9223372036854775807, 'where grants come from'),
    (2, 2, 0, 9223372036854775807, 'charges that no account could be found for'),
    (3, 3, 0, 9223372036854775807, 'earned by sites without a rate'),
    (-1, -1, 0, 9223372036854775807, 'what allocations had left when they ended');
