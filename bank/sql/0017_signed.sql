-- 0017: signed names its operation without a foreign key, as the other tables that every job writes do (0001): it
-- was a query and a row lock per hold, a tenth of what PostgreSQL did for a job.

ALTER TABLE signed DROP CONSTRAINT signed_op_id_fkey;
