-- 0005: what a site may do beyond settling its own jobs. The newest row of a site is in force.

CREATE TABLE site_right (
    site   text COLLATE "C" NOT NULL,
    op_id  bigint NOT NULL,
    claims boolean NOT NULL, -- may name users and accounts of jobs that nobody signed
    PRIMARY KEY (site, op_id)
);
CREATE TRIGGER site_right_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON site_right
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
