-- 0028: what a user signed is kept with the hold, since charges and extensions carry no signature; what a site claims
-- beyond it is disputed. A row of signed may be of a run without a hold: its hold_id is the usage's number, negative.

ALTER TABLE hold
    ADD COLUMN walltime_max_us bigint NOT NULL DEFAULT 0, -- that was signed; 0: by nobody, or before this was kept
    ADD COLUMN cost_max bigint NOT NULL DEFAULT 0,        -- of all that the signed job is paid for; 0: no bound
    ADD COLUMN uuid bytea NOT NULL DEFAULT '';            -- of the signed job

ALTER TABLE usage ADD COLUMN disputed bigint NOT NULL DEFAULT 0; -- of total
ALTER TABLE usage ALTER disputed TYPE not_negative;

ALTER DOMAIN leg_source DROP CONSTRAINT leg_source_check;
ALTER DOMAIN leg_source ADD CHECK
    (VALUE IN ('HELD', 'AVAILABLE', 'CREDIT', 'OVERRUN', 'SUSPENSE', 'DISPUTED'));

-- What bounds a site beside what users signed: see nui-site(1).
ALTER TABLE site_right
    ADD COLUMN node_procs bigint NOT NULL DEFAULT 0 CHECK (node_procs >= 0),
    ADD COLUMN proc_memory_mb bigint NOT NULL DEFAULT 0 CHECK (proc_memory_mb >= 0),
    ADD COLUMN overrun_us bigint NOT NULL DEFAULT 0 CHECK (overrun_us >= 0);
