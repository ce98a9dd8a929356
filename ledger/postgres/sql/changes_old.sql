-- The oldest changes, but for the last of all.
SELECT c.n, c.at FROM @ledger_changes AS c
WHERE c.n < (SELECT t.last FROM @ledger_told AS t WHERE t.one = 1) ORDER BY c.n LIMIT $1::bigint
