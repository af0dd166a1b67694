-- 0015: which signed job was first paid for as which job of the grid, and for which metascheduler: the same signed
-- job under another name is a replay. Rows stay, as holds do.

CREATE TABLE signed (
    identity text   NOT NULL,
    uuid     bytea  NOT NULL CHECK (length (uuid) = 16),
    hash     bytea  NOT NULL CHECK (length (hash) = 32), -- SHA-256 of what was signed
    grid_job text   NOT NULL,
    meta     text   NOT NULL, -- '' where the site did not say
    op_id    bigint NOT NULL REFERENCES op (id),
    PRIMARY KEY (uuid, identity)
);

CREATE TRIGGER signed_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON signed
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
