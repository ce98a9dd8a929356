SELECT x.id, x.n FROM unnest($11::text[]) AS s (state) CROSS JOIN LATERAL (
		SELECT w.id, w.n FROM @ledger_writes AS w
		WHERE w.tenant = $1::text AND w.state = s.state AND w.n {behind} $2::bigint
		ORDER BY w.n {direction} LIMIT $3::bigint) AS x
	ORDER BY x.n {direction} LIMIT $3::bigint
