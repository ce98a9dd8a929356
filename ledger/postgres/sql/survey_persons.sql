-- What waits for a person and has no due time at which a claim would meet it.
WITH {guard}
SELECT {state}, {row} FROM g LEFT JOIN (
	SELECT x.* FROM @ledger_writes AS x
	WHERE x.due IS NULL AND x.state <> 'settled' AND x.state IN ('held', 'review') AND x.damaged IS NULL
	LIMIT $1) AS w ON TRUE
