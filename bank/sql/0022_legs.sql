-- 0022: each leg of a hold is rewritten once, soon after it was written: half a page of room keeps that off the index
-- (with 30 % of a page, four in ten went through it: 37,000 instructions a leg, now 23,000).

ALTER TABLE hold_leg SET (fillfactor = 45);
