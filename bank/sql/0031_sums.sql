-- 0031: sums beyond 64 bits: what an answer's number can hold, and beside it the whole sum in credits as text.

CREATE FUNCTION micro (amount numeric) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest (least (amount, 9223372036854775807), -9223372036854775808)::bigint $$;
CREATE FUNCTION wide_credits (amount numeric) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN abs (amount) > 9223372036854775807 THEN trim_scale (amount / 1000000)::text ELSE '' END $$;
