-- Papers of a kind whose time has come, oldest due first.
SELECT p.n, p.tenant, p.kind, p.id, p.binder, p.subject, p.trace, p.created, p.state, p.due, p.done, p.version, p.updated, p.body
FROM ledger_papers AS p
WHERE p.kind = ?1 AND p.due <= ?2
ORDER BY p.due, p.n
LIMIT ?3
