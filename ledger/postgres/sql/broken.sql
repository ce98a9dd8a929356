SELECT w.tenant, w.id, w.damaged, w.created FROM @ledger_writes AS w
WHERE w.damaged IS NOT NULL ORDER BY w.n LIMIT $1::bigint
