-- Writes of one business operation that can block another one of workflow ?5:
-- those that are open, then those that were settled from a time on, the last
-- first. In the index all that are open are equal, and only those are
-- sorted.
SELECT w.n, w.id, w.tenant, w.tool, w.structural_key, w.idempotency_key, w.created, w.state, w.due, w.lease_until, w.fence, w.seq, w.intent, w.body, w.before, w.evidence, w.mismatches, w.child_intent, w.destination, w.key_digest, w.place, w.behind, w.settled_at, w.tombstone, w.blocks, w.step_of
FROM ledger_writes AS w
WHERE w.tenant = ?1 AND w.tool = ?2 AND w.idempotency_key = ?3 AND w.idempotency_key <> '' AND w.blocks IS NOT 0
	AND iif(w.state = 'settled', coalesce(w.settled_at, w.created), 9223372036854775807) >= ?4 AND w.step_of IS NOT ?5
ORDER BY iif(w.state = 'settled', coalesce(w.settled_at, w.created), 9223372036854775807) DESC, w.created DESC, w.n DESC
