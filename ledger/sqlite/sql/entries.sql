-- What was enqueued, in its order.
SELECT o.n, o.id, o.tenant, o.key_digest, o.intent
FROM ledger_outbox AS o
WHERE o.refused IS NULL
ORDER BY o.n
LIMIT ?1
