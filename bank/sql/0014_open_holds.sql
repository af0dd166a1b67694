-- 0014: the indexes of open holds by account and by end must not serve a search by job, which PostgreSQL took
-- them for while the table was small, reading one from end to end for every job: their condition now says
-- more than "open" does.

DROP INDEX hold_open_account;
DROP INDEX hold_open_expiry;
CREATE INDEX hold_open_account ON hold (account_id) WHERE open AND account_id IS NOT NULL;
CREATE INDEX hold_open_expiry ON hold (expires_at) WHERE open AND expires_at IS NOT NULL;
