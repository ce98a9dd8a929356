-- Some papers of a binder, but for its cover.
DELETE FROM ledger_papers WHERE n IN (
	SELECT p.n FROM ledger_papers AS p WHERE p.tenant = ?1 AND p.binder = ?2 AND p.binder <> '' AND p.n <> ?3 LIMIT ?4)
RETURNING tenant, kind, id
