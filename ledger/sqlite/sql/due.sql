-- What may be claimed now, oldest due first.
SELECT w.n, w.id, w.tenant, w.tool, w.structural_key, w.idempotency_key, w.created, w.state, w.due, w.lease_until, w.fence, w.seq, w.intent, w.body, w.before, w.evidence, w.mismatches, w.child_intent
FROM ledger_writes AS w
WHERE w.due <= ?1 AND w.lease_until <= ?1
ORDER BY w.due
LIMIT ?2
