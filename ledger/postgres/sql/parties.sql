-- The parties that come after one, each with when what it has due was due. The
-- walk jumps from one to the next in the index and looks at nothing between.
WITH RECURSIVE {guard},
walk AS (
	(SELECT w.destination, w.tenant, w.state, 1 AS step FROM @ledger_writes AS w
	WHERE w.due IS NOT NULL AND w.damaged IS NULL AND (w.destination, w.tenant, w.state) > ($1::text, $2::text, $3::text)
	ORDER BY w.destination, w.tenant, w.state LIMIT 1)
	UNION ALL
	SELECT x.destination, x.tenant, x.state, p.step + 1 FROM walk AS p CROSS JOIN LATERAL (
		SELECT w.destination, w.tenant, w.state FROM @ledger_writes AS w
		WHERE w.due IS NOT NULL AND w.damaged IS NULL AND (w.destination, w.tenant, w.state) > (p.destination, p.tenant, p.state)
		ORDER BY w.destination, w.tenant, w.state LIMIT 1) AS x
	WHERE p.step < $4::int)
SELECT {state}, EXISTS (SELECT 1 FROM @ledger_outbox WHERE refused IS NULL),
	coalesce(p.destination, ''), coalesce(p.tenant, ''), coalesce(p.state, ''), d.due
FROM g LEFT JOIN walk AS p ON TRUE
LEFT JOIN LATERAL (SELECT array_agg(x.due) AS due FROM (
	SELECT w.due FROM @ledger_writes AS w
	WHERE w.destination = p.destination AND w.tenant = p.tenant AND w.state = p.state
		AND w.due <= g.now AND w.due IS NOT NULL AND w.lease_until <= g.now AND w.damaged IS NULL
	ORDER BY w.due
	LIMIT greatest($5::bigint, $6::bigint / (SELECT greatest(count(*), 1) FROM walk))) AS x) AS d ON TRUE
ORDER BY p.step
