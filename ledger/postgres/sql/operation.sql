-- Writes that may stop another one of their business operation, those that are
-- open first, then the newest: what is open, or was settled from a time on, but
-- for the steps of a workflow. The one that holds the operation is among them
-- whatever it is.
SELECT w.holds, {row} FROM (
	SELECT x.* FROM @ledger_writes AS x
	WHERE x.tenant = $1 AND x.tool = $2 AND x.idempotency_key = $3 AND x.blocks >= $4 AND NOT x.holds
		AND (x.step_of = '' OR x.step_of <> $5)
	UNION ALL
	SELECT x.* FROM @ledger_writes AS x
	WHERE x.tenant = $1 AND x.tool = $2 AND x.idempotency_key = $3 AND x.holds) AS w
ORDER BY w.blocks DESC, w.created DESC, w.n DESC
