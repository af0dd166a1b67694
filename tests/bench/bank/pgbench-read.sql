-- One account's balance as well as plain SQL can.
\set n random(1, 1000) - 1
SELECT a.name, l.id, l.valid_from, l.valid_to, l.credit_limit, b.granted, b.settled, b.posted, b.held
  FROM bank.account a JOIN bank.allocation l ON l.account_id = a.id JOIN bank.balance b ON b.allocation_id = l.id
 WHERE a.name = 'acct' || :n;
