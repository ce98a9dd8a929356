-- Changes of one tenant from one time to before another, counted in spans of $4.
WITH {guard},
c AS (SELECT (x.at - $2::bigint) / $4::bigint AS span, x.kind, x.settlement, count(*) AS count,
		count(*) FILTER (WHERE x.saved) AS saved, sum(x.sends)::bigint AS sends, sum(x.reads)::bigint AS reads
	FROM @ledger_changes AS x
	WHERE x.tenant = $1::text AND x.at >= $2::bigint AND x.at < $3::bigint
	GROUP BY 1, x.kind, x.settlement)
SELECT {state}, coalesce(c.span, 0), coalesce(c.kind, ''), coalesce(c.settlement, ''), coalesce(c.count, 0), coalesce(c.saved, 0),
	coalesce(c.sends, 0), coalesce(c.reads, 0)
FROM g LEFT JOIN c ON TRUE
