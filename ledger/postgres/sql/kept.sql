WITH {guard}
SELECT {state}, {paper} FROM g LEFT JOIN LATERAL (
	SELECT x.* FROM @ledger_papers AS x WHERE (x.tenant, x.kind, x.id) > ($1::text, $2::text, $3::text) AND x.kind <> $4::text
	ORDER BY x.tenant, x.kind, x.id LIMIT $5::bigint) AS p ON TRUE
ORDER BY p.tenant, p.kind, p.id
