-- 0008: what reconciliation found. A row is opened once, has an owner when somebody takes it, and is closed by
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
CREATE TRIGGER recon_row_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON recon_row
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();

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
CREATE TRIGGER recon_event_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON recon_event
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
