-- When the first change from a number on happened.
SELECT c.at
FROM ledger_changes AS c
WHERE c.n >= ?1
ORDER BY c.n
LIMIT 1
