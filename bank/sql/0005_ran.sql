-- 0005: a charge says what accounting wants to know of its run, beside what prices it; 0 and '': not known.

ALTER TABLE charge
    ADD COLUMN cpu_us       bigint NOT NULL DEFAULT 0,
    ADD COLUMN nodes        bigint NOT NULL DEFAULT 0,
    ADD COLUMN memory_mb    bigint NOT NULL DEFAULT 0, -- the most that it was seen to use
    ADD COLUMN submitted_at bigint NOT NULL DEFAULT 0,
    ADD COLUMN local_user   text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN queue        text COLLATE "C" NOT NULL DEFAULT ''; -- its class at the site
