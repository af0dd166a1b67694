-- 0035: what was split off a deposit is of who gave the deposit, as what was split off a grant is.

CREATE FUNCTION giver_of (op bigint, award bigint, source bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN award IS NOT NULL OR source IS NULL THEN bank.giver_of (op, award) ELSE (WITH RECURSIVE up (op_id, split_from) AS (
        SELECT l.op_id, l.split_from FROM bank.allocation l WHERE l.id = source
        UNION ALL SELECT l.op_id, l.split_from FROM up JOIN bank.allocation l ON l.id = up.split_from)
        SELECT bank.giver_of (op_id, NULL) FROM up WHERE split_from IS NULL) END $$;
