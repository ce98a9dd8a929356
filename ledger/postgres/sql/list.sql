-- Writes of one tenant in some states, newest first, created before number $3.
WITH {guard},
found AS (
	SELECT x.id, x.n FROM unnest($2::text[]) AS s (state) CROSS JOIN LATERAL (
		SELECT w.id, w.n FROM @ledger_writes AS w
		WHERE w.tenant = $1 AND w.state = s.state AND w.n < $3
		ORDER BY w.n DESC LIMIT $4) AS x
	ORDER BY x.n DESC LIMIT $4)
SELECT {state}, {row} FROM g LEFT JOIN found AS f ON TRUE LEFT JOIN LATERAL (
	SELECT x.* FROM @ledger_writes AS x WHERE x.id = f.id OFFSET 0) AS w ON TRUE
ORDER BY f.n DESC
