-- 0011: an allocation may give away more than was granted to it. Credits of one that repaid the overrun of another
-- stay there when the overrun is refunded; when they then leave, what was granted to the second becomes less than
-- nothing, and what was granted to the first is as much more than it has. Sums over an account are right.

ALTER TABLE balance DROP CONSTRAINT balance_granted_check;
