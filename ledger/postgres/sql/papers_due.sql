-- Papers of a kind whose time has come, oldest due first.
WITH {guard}
SELECT {state}, {paper} FROM g LEFT JOIN LATERAL (
	SELECT x.* FROM @ledger_papers AS x WHERE x.kind = $1::text AND x.due <= g.now
	ORDER BY x.due, x.n LIMIT $2::bigint) AS p ON TRUE
ORDER BY p.due, p.n
