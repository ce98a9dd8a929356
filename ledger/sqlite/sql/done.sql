-- What is settled and owes nothing, oldest first, behind a row: the writes to
-- be buried, or the tombstones to be forgotten.
SELECT w.n, w.id, w.tenant, w.tool, w.structural_key, w.idempotency_key, w.created, w.state, w.due, w.lease_until, w.fence, w.seq, w.intent, w.body, w.before, w.evidence, w.mismatches, w.child_intent, w.destination, w.key_digest, w.place, w.behind, w.settled_at, w.tombstone, w.blocks, w.step_of
FROM ledger_writes AS w
WHERE w.state = 'settled' AND w.due IS NULL AND w.tombstone = ?1
	AND coalesce(w.settled_at, w.created) BETWEEN ?2 AND ?4 AND (coalesce(w.settled_at, w.created) > ?2 OR w.n > ?3)
ORDER BY coalesce(w.settled_at, w.created), w.n
LIMIT ?5
