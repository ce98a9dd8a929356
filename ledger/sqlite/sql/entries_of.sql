-- What was enqueued about one record, in its order.
SELECT o.n, o.id, o.tenant, o.key_digest, o.intent
FROM ledger_outbox AS o
WHERE o.key_digest = ?1 AND o.refused IS NULL
ORDER BY o.n
LIMIT ?2
