-- Writes of one business operation, oldest first, from a time on, and older ones that are still open.
SELECT w.n, w.id, w.tenant, w.tool, w.structural_key, w.idempotency_key, w.created, w.state, w.due, w.lease_until, w.fence, w.seq, w.intent, w.body, w.before, w.evidence, w.mismatches, w.child_intent, w.destination, w.key_digest, w.place, w.behind, w.settled_at, w.tombstone
FROM ledger_writes AS w
WHERE w.tenant = ?1 AND w.tool = ?2 AND w.idempotency_key = ?3 AND w.idempotency_key <> '' AND (w.created >= ?4 OR w.state <> 'settled')
ORDER BY w.created, w.n
