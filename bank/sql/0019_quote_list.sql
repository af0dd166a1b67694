-- 0019: quotes are listed with whose account they were asked for and what they priced, and can be cancelled.

ALTER TABLE quote ADD COLUMN account text COLLATE "C"; -- asked for; NULL: before this version
ALTER TABLE quote_card ADD COLUMN price bigint CHECK (price >= 0); -- of what was asked for at its site; NULL likewise
CREATE INDEX quote_account ON quote (account, id);
CREATE INDEX quote_identity ON quote (identity, id);
CREATE INDEX quote_expires ON quote (expires_at);

CREATE TABLE quote_cancel (
    quote_id     bigint PRIMARY KEY REFERENCES quote,
    op_id        bigint NOT NULL,
    cancelled_at bigint NOT NULL -- no hold has its rates from then on
);
CREATE TRIGGER quote_cancel_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON quote_cancel
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
