-- Papers that are done and have not been changed for long, oldest change first,
-- behind one, for this transaction alone.
SELECT x.updated, x.n, x.tenant, x.kind, x.id, x.binder <> '' AND x.binder = x.id
FROM @ledger_papers AS x
WHERE x.done AND x.due IS NULL AND x.updated BETWEEN $1::bigint AND $3::bigint AND (x.updated > $1::bigint OR x.n > $2::bigint)
ORDER BY x.updated, x.n
LIMIT $4::bigint
FOR UPDATE SKIP LOCKED
