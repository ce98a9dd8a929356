-- The numbers of papers of one kind with one trace, newest first.
SELECT p.n
FROM ledger_papers AS p
WHERE p.tenant = ?1 AND p.kind = ?2 AND p.trace = ?3 AND p.trace <> ''
	AND (?4 = '' OR p.subject = ?4) AND (?6 = '[]' OR p.state IN (SELECT s.value FROM json_each(?6) AS s))
ORDER BY p.n DESC
LIMIT ?7 OFFSET ?8
