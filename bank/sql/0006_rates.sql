-- 0006: rate cards: what is measured, which jobs pay, and rates per QoS, class, resource, time of day
-- and for co-reserved jobs; holds pin what their card said.

ALTER TABLE rate ADD COLUMN measure text COLLATE "C" NOT NULL DEFAULT 'wall'
    CHECK (measure IN ('wall', 'cpu', 'pe'));
ALTER TABLE rate ADD COLUMN successful_only boolean NOT NULL DEFAULT false;

CREATE TABLE rate_factor (
    site     text COLLATE "C" NOT NULL,
    version  integer NOT NULL,
    position smallint NOT NULL,
    kind     text COLLATE "C" NOT NULL CHECK (kind IN
        ('qos', 'class', 'gres', 'memory', 'group', 'time')),
    name     text COLLATE "C" NOT NULL,
    ppm      bigint NOT NULL CHECK (ppm >= 0),
    PRIMARY KEY (site, version, position),
    UNIQUE (site, version, kind, name),
    FOREIGN KEY (site, version) REFERENCES rate
);
CREATE TRIGGER rate_factor_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON rate_factor
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();

ALTER TABLE hold ADD COLUMN extra_ppm bigint NOT NULL DEFAULT 0;
ALTER TABLE hold ADD COLUMN qos_ppm bigint NOT NULL DEFAULT 1000000;
ALTER TABLE hold ADD COLUMN class_ppm bigint NOT NULL DEFAULT 1000000;
ALTER TABLE hold ADD COLUMN group_ppm bigint NOT NULL DEFAULT 1000000;
ALTER TABLE hold ADD COLUMN pe_milli bigint NOT NULL DEFAULT 0;
