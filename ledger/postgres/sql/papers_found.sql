-- A page of papers of one kind and tenant, and how many there are in all. The
-- bodies of those beyond the page are not read.
WITH {guard},
f AS MATERIALIZED (SELECT x.tenant, x.kind, x.id, x.came, x.n FROM @ledger_papers AS x
	WHERE x.tenant = $1::text AND x.kind = $2::text{narrowed})
SELECT {state}, (SELECT count(*) FROM f), {paper}
FROM g LEFT JOIN (SELECT * FROM f ORDER BY f.came {direction}, f.n {direction} LIMIT $3::bigint OFFSET $4::bigint) AS f ON TRUE
LEFT JOIN LATERAL (
	SELECT x.* FROM @ledger_papers AS x WHERE x.tenant = f.tenant AND x.kind = f.kind AND x.id = f.id OFFSET 0) AS p ON TRUE
ORDER BY f.came {direction}, f.n {direction}
