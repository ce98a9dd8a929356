-- The numbers of papers of one kind in one binder, in the order in which they came.
SELECT p.n
FROM ledger_papers AS p
WHERE p.tenant = ?1 AND p.kind = ?2 AND p.binder = ?3 AND p.binder <> ''
	AND (?4 = '' OR p.subject = ?4) AND (?5 = '' OR p.trace = ?5) AND (?6 = '[]' OR p.state IN (SELECT s.value FROM json_each(?6) AS s))
ORDER BY p.n
LIMIT ?7 OFFSET ?8
