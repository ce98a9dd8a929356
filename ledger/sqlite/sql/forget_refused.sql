DELETE FROM ledger_outbox WHERE n IN (
	SELECT o.n FROM ledger_outbox AS o WHERE o.refused IS NOT NULL AND o.enqueued <= ?1 ORDER BY o.n LIMIT ?2)
