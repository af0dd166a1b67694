-- 0016: rates per machine and node type; holds remember the processors that they had of each type.

ALTER TABLE rate_factor DROP CONSTRAINT rate_factor_kind_check;
ALTER TABLE rate_factor ADD CONSTRAINT rate_factor_kind_check CHECK (kind IN
    ('qos', 'class', 'gres', 'memory', 'group', 'time', 'machine', 'nodetype'));
ALTER TABLE hold ADD COLUMN nodes text COLLATE "C" NOT NULL DEFAULT ''; -- "fat=4 thin=12"
