-- Writes of one tenant in some states, newest first, created before number $3.
WITH {guard},
found AS (
	SELECT x.id, x.n FROM unnest($2::text[]) AS s (state) CROSS JOIN LATERAL (
		SELECT w.id, w.n FROM @ledger_writes AS w
		WHERE w.tenant = $1 AND w.state = s.state AND w.n < $3
		ORDER BY w.n DESC LIMIT $4) AS x
	ORDER BY x.n DESC LIMIT $4)
SELECT {state}, {row} FROM g LEFT JOIN found AS f ON TRUE LEFT JOIN @ledger_writes AS w ON w.id = f.id
ORDER BY f.n DESC
