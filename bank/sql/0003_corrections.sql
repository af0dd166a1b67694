-- 0003: refunds name the leg of the charge that they give back; never more than it took.

CREATE TABLE refund_leg (
    op_id         bigint NOT NULL,
    leg           smallint NOT NULL,
    charge_id     bigint NOT NULL,
    charge_leg    smallint NOT NULL,
    allocation_id bigint NOT NULL,
    amount        bigint NOT NULL CHECK (amount > 0),
    PRIMARY KEY (op_id, leg)
);
CREATE INDEX refund_leg_charge ON refund_leg (charge_id, charge_leg);
CREATE UNIQUE INDEX charge_op ON charge (op_id);
CREATE TRIGGER refund_leg_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON refund_leg
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change ();
