-- The same of one record's writes that are open or owe a recheck.
WITH {guard}
SELECT {state}, {row} FROM g LEFT JOIN @ledger_writes AS w
	ON w.about = $5 AND (w.state <> 'settled' OR w.due IS NOT NULL)
	AND w.tenant = $1 AND w.state = ANY ($2::text[]) AND w.n < $3
ORDER BY w.n DESC LIMIT $4
