-- One write of one tenant, beside the clock and the version. The row of the
-- write is NULL when there is none.
SELECT m.version, m.compatible_from, m.newest, w.n, w.id, w.tenant, w.tool, w.structural_key, w.idempotency_key, w.created, w.state, w.due, w.lease_until, w.fence, w.seq, w.intent, w.body, w.before, w.evidence, w.mismatches, w.child_intent, w.destination, w.key_digest, w.place, w.behind, w.settled_at, w.tombstone, w.blocks, w.step_of
FROM ledger_meta AS m LEFT JOIN ledger_writes AS w ON w.id = ?2 AND w.tenant = ?1
