SELECT p.n, p.tenant, p.kind, p.id, p.binder, p.subject, p.trace, p.created, p.state, p.due, p.done, p.version, p.updated, p.body
FROM ledger_papers AS p
WHERE p.n > ?1 AND p.kind <> ?3
ORDER BY p.n
LIMIT ?2
