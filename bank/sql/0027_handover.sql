-- What the keys are made from by which metaschedulers seal the hand-overs of jobs to sites (proto/rpc/handover.h). It is
-- in the database so that it is restored with the ledger; whoever reads it can seal in the name of every
-- metascheduler, so nobody but the service needs to. Another one ends all hand-overs: sites' holds are refused until
-- the metaschedulers have given them new ones. The text has 366 random bits, by PostgreSQL's strong generator.
CREATE TABLE handover (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    secret bytes32 NOT NULL
);
INSERT INTO handover (secret) VALUES (sha256 (convert_to (
    gen_random_uuid ()::text || gen_random_uuid ()::text || gen_random_uuid ()::text, 'UTF8')));
REVOKE ALL ON handover FROM PUBLIC;

-- No line tells of it: lines are shown to who asks for a proof. That it was changed shows in refused holds.
CREATE OR REPLACE FUNCTION told_tables () RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT c.relname::text FROM pg_catalog.pg_class c WHERE c.relnamespace = 'bank'::regnamespace AND
        c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname NOT IN ('op', 'entry', 'block', 'change',
        'signer', 'unsealed', 'schema_version', 'checkpoint', 'checkpoint_run', 'handover') $$;
