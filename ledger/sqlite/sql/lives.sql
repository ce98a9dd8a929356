SELECT w.n, w.id, w.tenant, w.tool, w.structural_key, w.idempotency_key, w.created, w.state, w.due, w.lease_until, w.fence, w.seq, w.intent, w.body, w.before, w.evidence, w.mismatches, w.child_intent, w.destination, w.key_digest, w.place, w.behind, w.settled_at, w.tombstone, w.blocks, w.step_of
FROM ledger_writes AS w
WHERE w.id > ?1
ORDER BY w.id
LIMIT ?2
