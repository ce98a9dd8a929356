-- The first entries of one line, for this transaction alone. Whoever is just
-- taking them in is waited for.
SELECT o.n, o.id, o.tenant, o.key_digest, o.intent
FROM @ledger_outbox AS o
WHERE o.key_digest = $1::text AND o.refused IS NULL
ORDER BY o.n
LIMIT $2::int
FOR UPDATE
