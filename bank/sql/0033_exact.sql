-- 0033: sums beyond 64 bits to the last micro-credit: a quotient of such numbers is rounded to some 16 digits, a product is not.

CREATE OR REPLACE FUNCTION wide_credits (amount numeric) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN abs (amount) > 9223372036854775807 THEN trim_scale (amount * 0.000001)::text ELSE '' END $$;
