-- 0009: what jobs were charged that ended for their site's fault is given back where that is the policy of
-- the bank for the site; due is what was, when the last charge was recorded.

ALTER TABLE site_right ADD COLUMN refunds boolean NOT NULL DEFAULT false;
ALTER TABLE charge ADD COLUMN refund_due boolean NOT NULL DEFAULT false;
CREATE INDEX charge_refund_due ON charge (op_id) WHERE refund_due;
