-- 0023: what a column of the tables that every job writes may hold is said by its type. A table's CHECK is parsed anew
-- for every statement that writes to the table (13,000 instructions each, 32 times for a lone hold and its charge), a
-- domain's once per connection. What compares two columns stays a CHECK.

CREATE DOMAIN bytes16 AS bytea;
CREATE DOMAIN bytes32 AS bytea;
CREATE DOMAIN positive AS bigint;
CREATE DOMAIN not_negative AS bigint;
CREATE DOMAIN not_zero AS bigint;
CREATE DOMAIN entry_layer AS "char";
CREATE DOMAIN leg_source AS text COLLATE "C";

-- While the domains admit everything no table has to be written anew, and no index.
ALTER TABLE op ALTER key TYPE bytes16, ALTER hash TYPE bytes32,
    DROP CONSTRAINT op_key_check, DROP CONSTRAINT op_hash_check;
ALTER TABLE balance ALTER settled TYPE not_negative, ALTER held TYPE not_negative,
    DROP CONSTRAINT balance_settled_check, DROP CONSTRAINT balance_held_check;
ALTER TABLE hold ALTER amount TYPE not_negative, DROP CONSTRAINT hold_amount_check;
ALTER TABLE hold_leg ALTER amount TYPE not_negative, ALTER settled TYPE not_negative, ALTER released TYPE not_negative,
    DROP CONSTRAINT hold_leg_amount_check, DROP CONSTRAINT hold_leg_settled_check,
    DROP CONSTRAINT hold_leg_released_check;
ALTER TABLE usage ALTER total TYPE not_negative, DROP CONSTRAINT usage_total_check;
ALTER TABLE charge ALTER amount TYPE not_negative, ALTER released TYPE not_negative,
    ALTER refund_most TYPE not_negative, DROP CONSTRAINT charge_amount_check,
    DROP CONSTRAINT charge_released_check, DROP CONSTRAINT charge_refund_most_check;
ALTER TABLE charge_leg ALTER amount TYPE positive, ALTER source TYPE leg_source,
    DROP CONSTRAINT charge_leg_amount_check, DROP CONSTRAINT charge_leg_source_check;
ALTER TABLE entry ALTER amount TYPE not_zero, ALTER layer TYPE entry_layer,
    DROP CONSTRAINT entry_amount_check, DROP CONSTRAINT entry_layer_check;
ALTER TABLE site_ack ALTER acked TYPE not_negative, DROP CONSTRAINT site_ack_acked_check;
ALTER TABLE signed ALTER uuid TYPE bytes16, ALTER hash TYPE bytes32,
    DROP CONSTRAINT signed_uuid_check1, DROP CONSTRAINT signed_hash_check1;
ALTER TABLE block ALTER ops TYPE positive, ALTER prev TYPE bytes32, ALTER root TYPE bytes32,
    DROP CONSTRAINT block_ops_check, DROP CONSTRAINT block_prev_check, DROP CONSTRAINT block_root_check;

-- Each looks at every row that there is.
ALTER DOMAIN bytes16 ADD CHECK (octet_length (VALUE) = 16);
ALTER DOMAIN bytes32 ADD CHECK (octet_length (VALUE) = 32);
ALTER DOMAIN positive ADD CHECK (VALUE > 0);
ALTER DOMAIN not_negative ADD CHECK (VALUE >= 0);
ALTER DOMAIN not_zero ADD CHECK (VALUE <> 0);
ALTER DOMAIN entry_layer ADD CHECK (VALUE IN ('P', 'H'));
ALTER DOMAIN leg_source ADD CHECK (VALUE IN ('HELD', 'AVAILABLE', 'CREDIT', 'OVERRUN', 'SUSPENSE'));
