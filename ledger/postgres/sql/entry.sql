-- The entry of one write, an open one rather than one that was refused.
SELECT o.key_digest, coalesce(o.refused, ''), o.tenant
FROM @ledger_outbox AS o
WHERE o.id = $1::text
ORDER BY o.refused IS NOT NULL, o.n DESC
LIMIT 1
