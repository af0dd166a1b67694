-- 0024: allocations that begin after they were made are looked for by when they do.

CREATE INDEX allocation_valid_from ON allocation (valid_from);
