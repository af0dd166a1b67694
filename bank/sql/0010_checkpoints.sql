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

CREATE TRIGGER checkpoint_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON checkpoint
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
CREATE TRIGGER checkpoint_run_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON checkpoint_run
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
