-- 0004: an allocation says itself who gave it, the agency whose grant or deposit it is, also where the bank's own people
-- transferred it or carried it forward.

ALTER TABLE allocation ADD COLUMN giver text NOT NULL DEFAULT '';

-- What was passed on is of who gave what it was taken from, older ones first. The legs of an operation that took of several
-- allocations are, for each, what left it and what came of it.
DO $$
DECLARE
    l bank.allocation;
BEGIN
    FOR l IN SELECT * FROM bank.allocation ORDER BY id LOOP
        UPDATE bank.allocation SET giver = coalesce (CASE
            WHEN l.award_id IS NOT NULL THEN bank.giver_of (NULL, l.award_id)
            WHEN l.split_from IS NOT NULL THEN (SELECT s.giver FROM bank.allocation s WHERE s.id = l.split_from)
            ELSE coalesce ((SELECT s.giver FROM bank.entry o JOIN bank.allocation s ON s.id = o.allocation_id
                    JOIN bank.account a ON a.id = s.account_id AND a.class = 'PROJECT'
                    WHERE o.op_id = l.op_id AND o.layer = 'P' AND o.amount < 0 AND o.allocation_id < l.id AND o.leg < (
                        SELECT i.leg FROM bank.entry i WHERE i.op_id = l.op_id AND i.allocation_id = l.id AND i.layer = 'P')
                    ORDER BY o.leg DESC LIMIT 1),
                bank.giver_of (l.op_id, NULL)) END, '') WHERE id = l.id;
    END LOOP;
END $$;
SELECT tell_again ('allocation');

DROP FUNCTION giver_of (bigint, bigint, bigint);
DROP FUNCTION giver_of (bigint, bigint);
