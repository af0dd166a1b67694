-- 0004: every transaction of the writer is a block: the Merkle root over its operations, chained to
-- the block before it and signed. Operations that were recorded before are in no block.

CREATE TABLE signer (
    id    bytea PRIMARY KEY CHECK (octet_length (id) = 32), -- SHA-256 of chain
    chain bytea NOT NULL                                    -- an Envelope with the certificates only
);

CREATE TABLE block (
    number      bigint PRIMARY KEY,
    first_op    bigint NOT NULL UNIQUE,
    ops         bigint NOT NULL CHECK (ops > 0),
    recorded_at bigint NOT NULL,
    prev        bytea NOT NULL CHECK (octet_length (prev) = 32),
    root        bytea NOT NULL CHECK (octet_length (root) = 32),
    signer      bytea NOT NULL,
    signature   bytea NOT NULL
);

CREATE TRIGGER signer_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON signer
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
CREATE TRIGGER block_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON block
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
