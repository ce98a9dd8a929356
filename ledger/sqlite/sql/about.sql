-- Writes about one record that are open or owe a recheck, newest first, created
-- before number ?3, in the states that ?4 names. Those that
-- are settled and owe nothing are not met.
SELECT w.n, w.id, w.tenant, w.tool, w.structural_key, w.idempotency_key, w.created, w.state, w.due, w.lease_until, w.fence, w.seq, w.intent, w.body, w.before, w.evidence, w.mismatches, w.child_intent, w.destination, w.key_digest, w.place, w.behind, w.settled_at, w.tombstone, w.blocks, w.step_of
FROM (
	SELECT l.n FROM ledger_writes AS l INDEXED BY ledger_writes_line WHERE l.key_digest = ?1 AND l.place IS NOT NULL
	UNION ALL
	SELECT b.n FROM ledger_writes AS b INDEXED BY ledger_writes_beside WHERE b.key_digest = ?1 AND b.place IS NULL AND (b.state <> 'settled' OR b.due IS NOT NULL)
) AS of CROSS JOIN ledger_writes AS w ON w.n = of.n
WHERE w.tenant = ?2 AND w.n < ?3 AND instr(?4, ',' || w.state || ',')
ORDER BY w.n DESC
LIMIT ?5
