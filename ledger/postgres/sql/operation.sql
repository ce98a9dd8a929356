-- Writes of one business operation, oldest first, from a time on, and older
-- ones that are still open or hold it.
SELECT w.holds, {row} FROM @ledger_writes AS w
WHERE w.tenant = $1 AND w.tool = $2 AND w.idempotency_key = $3 AND w.idempotency_key <> ''
	AND (w.created >= $4 OR w.state <> 'settled' OR w.holds)
ORDER BY w.created, w.n
