-- One entry, if it is the first of its line and nobody else is just taking it
-- in, for this transaction alone.
SELECT o.n, o.id, o.tenant, o.key_digest, o.intent
FROM @ledger_outbox AS o
WHERE o.n = $1::bigint AND o.refused IS NULL AND NOT EXISTS (
	SELECT 1 FROM @ledger_outbox AS p WHERE p.key_digest = o.key_digest AND p.refused IS NULL AND p.n < o.n)
FOR UPDATE SKIP LOCKED
