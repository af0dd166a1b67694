-- 0018: how much is given back of what jobs were charged that their site failed (rule R4): at most what so much
-- of a job's time cost, nothing below a minimum, nothing of jobs whose last charge came too late; 0: no bound.

ALTER TABLE site_right ADD COLUMN refund_cap_us bigint NOT NULL DEFAULT 0 CHECK (refund_cap_us >= 0);
ALTER TABLE site_right ADD COLUMN refund_minimum bigint NOT NULL DEFAULT 0 CHECK (refund_minimum >= 0);
ALTER TABLE site_right ADD COLUMN refund_window_us bigint NOT NULL DEFAULT 0 CHECK (refund_window_us >= 0);

-- Of all charges of the job; NULL: all (before this version).
ALTER TABLE charge ADD COLUMN refund_most bigint CHECK (refund_most >= 0);

-- What is due to be given back of one charge: the newest of its job's come first.
CREATE FUNCTION refund_due_of (a_charge bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT greatest (0, least (c.amount, coalesce (d.refund_most, c.amount) -
        CASE WHEN d.refund_most IS NULL THEN 0 ELSE
            (SELECT coalesce (sum (x.amount), 0) FROM charge x WHERE x.usage_id = c.usage_id AND x.id > c.id) END))::bigint
    FROM charge c JOIN charge d ON d.usage_id = c.usage_id AND d.refund_due WHERE c.id = a_charge
$$;
