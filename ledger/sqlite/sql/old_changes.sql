-- The oldest changes, but for the last of all.
SELECT c.n, c.at
FROM ledger_changes AS c
WHERE c.n < (SELECT max(l.n) FROM ledger_changes AS l)
ORDER BY c.n
LIMIT ?1
