SELECT p.n, p.tenant, p.kind, p.id, p.binder, p.subject, p.trace, p.created, p.state, p.due, p.done, p.version, p.updated, p.body
FROM ledger_papers AS p
WHERE (p.tenant, p.kind, p.id) > (?3, ?4, ?5) AND p.kind <> ?1
ORDER BY p.tenant, p.kind, p.id
LIMIT ?2
