-- The numbers of papers of one kind in one state, newest first.
SELECT p.n
FROM ledger_papers AS p
WHERE p.tenant = ?1 AND p.kind = ?2 AND p.state = ?3
ORDER BY p.n DESC
LIMIT ?7 OFFSET ?8
