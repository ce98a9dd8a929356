-- Papers that are done and that nobody is to look at, oldest first, behind one,
-- without their bodies.
SELECT p.n, p.tenant, p.id, p.binder, p.updated
FROM ledger_papers AS p
WHERE p.done AND p.due IS NULL AND p.updated BETWEEN ?1 AND ?3 AND (p.updated > ?1 OR p.n > ?2)
ORDER BY p.updated, p.n
LIMIT ?4
