DELETE FROM @ledger_outbox WHERE n = ANY (ARRAY(
	SELECT o.n FROM @ledger_outbox AS o WHERE o.refused IS NOT NULL AND o.enqueued <= $1::bigint ORDER BY o.n LIMIT $2::bigint))
