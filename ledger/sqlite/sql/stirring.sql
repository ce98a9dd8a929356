-- Is there a paper in a binder that is due, or was changed after a time?
SELECT 1
FROM ledger_papers AS p
WHERE p.tenant = ?1 AND p.binder = ?2 AND p.binder <> '' AND (p.due IS NOT NULL OR p.updated > ?3)
LIMIT 1
