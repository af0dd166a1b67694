-- 0002: what an allocation still has when it ends goes to bank:expired, by an entry dated its end.
-- Rows that migrations add from here on have ids below zero: those above belong to the committer.

INSERT INTO account (id, name, class, project_id, unit_id) VALUES
    (-1, 'bank:expired', 'EXPIRED', NULL, 1);
INSERT INTO allocation (id, account_id, valid_from, valid_to, description) VALUES
    (-1, -1, 0, 9223372036854775807, 'what allocations had left when they ended');
CREATE INDEX allocation_valid_to ON allocation (valid_to) WHERE valid_to < 9223372036854775807;
