SELECT o.tenant, o.id, o.refused, o.enqueued FROM @ledger_outbox AS o
WHERE o.refused IS NOT NULL ORDER BY o.n LIMIT $1::bigint
