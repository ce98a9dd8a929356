SELECT s.n, s.id FROM @ledger_search AS s
	WHERE s.tenant = $1::text AND s.{word} = $11::text{said} AND s.n {behind} $2::bigint
	ORDER BY s.n {direction} LIMIT $3::bigint
