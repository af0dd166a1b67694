-- 0012: quotes that keep the rates of their sites for a user's job, and what was held or charged at them.

CREATE TABLE quote (
    id         bigint PRIMARY KEY,
    op_id      bigint NOT NULL,
    identity   text COLLATE "C" NOT NULL, -- whose jobs may have them
    expires_at bigint NOT NULL,
    reusable   boolean NOT NULL           -- else for the first job that uses it
);
CREATE TABLE quote_card (
    quote_id     bigint NOT NULL REFERENCES quote,
    position     smallint NOT NULL,
    site         text COLLATE "C" NOT NULL,
    rate_version integer NOT NULL,
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

CREATE TRIGGER quote_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON quote
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
CREATE TRIGGER quote_card_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON quote_card
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
CREATE TRIGGER quote_use_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON quote_use
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
