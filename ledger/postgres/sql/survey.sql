-- What is open or owes a recheck, counted.
WITH {guard},
q AS (SELECT w.tenant, w.destination, w.state, count(*) AS count,
		count(*) FILTER (WHERE w.due <= g.now AND w.lease_until <= g.now AND w.owner = '') AS due,
		count(*) FILTER (WHERE w.lease_until > g.now AND w.owner <> '') AS leased,
		count(*) FILTER (WHERE w.due <= g.now AND w.lease_until <= g.now AND w.owner <> '') AS orphaned,
		count(*) FILTER (WHERE w.due IS NULL AND w.behind IS NOT NULL AND w.lease_until <= g.now) AS behind,
		min(w.due) FILTER (WHERE w.due <= g.now AND w.lease_until <= g.now) AS oldest_due,
		min(w.created) AS oldest_created
	FROM @ledger_writes AS w CROSS JOIN g
	WHERE (w.state <> 'settled' OR w.due IS NOT NULL) AND w.damaged IS NULL
	GROUP BY w.tenant, w.destination, w.state)
SELECT {state}, coalesce(q.tenant, ''), coalesce(q.destination, ''), coalesce(q.state, ''), coalesce(q.count, 0),
	coalesce(q.due, 0), coalesce(q.leased, 0), coalesce(q.orphaned, 0), coalesce(q.behind, 0),
	coalesce(q.oldest_due, 0), coalesce(q.oldest_created, 0)
FROM g LEFT JOIN q ON TRUE
ORDER BY q.tenant, q.destination, q.state
