-- Beside the clock and the version: whether a write of tenant ?1 is there, whether
-- one of key digest ?3 is in the queue or held, and the number of the newest write.
SELECT m.version, m.compatible_from,
	EXISTS (SELECT 1 FROM ledger_writes AS w WHERE w.id = ?2 AND w.tenant = ?1),
	EXISTS (SELECT 1 FROM ledger_writes AS q WHERE q.key_digest = ?3 AND q.place IS NOT NULL)
		OR EXISTS (SELECT 1 FROM ledger_writes AS h
			WHERE h.key_digest = ?3 AND h.place IS NULL AND (h.state <> 'settled' OR h.due IS NOT NULL) AND h.state = 'held'),
	coalesce((SELECT max(l.n) FROM ledger_writes AS l), 0)
FROM ledger_meta AS m
