-- Writes that can stop another one of a business operation, those that are open
-- first, then the newest, at most so many.
WITH {guard}
SELECT {state}, {row} FROM g LEFT JOIN (
	SELECT x.* FROM @ledger_writes AS x
	WHERE x.tenant = $1 AND x.tool = $2 AND x.idempotency_key = $3 AND x.blocks > 0
	ORDER BY x.blocks DESC, x.created DESC, x.n DESC LIMIT $4) AS w ON TRUE
ORDER BY w.blocks DESC, w.created DESC, w.n DESC
