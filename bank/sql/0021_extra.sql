-- 0021: what memory and generic resources cost per second is pinned in 1024ths of a millionth of a credit (memory
-- is priced per 1024 MB): in whole millionths, rounded up, a charge cost more than the card says.

ALTER TABLE hold RENAME COLUMN extra_ppm TO extra_parts;
UPDATE hold SET extra_parts = extra_parts * 1024 WHERE extra_parts <> 0;
