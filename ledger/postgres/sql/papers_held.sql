h AS MATERIALIZED (
	SELECT p.ord, p.version, coalesce(a.version, b.version, 0) AS have
	FROM (SELECT * FROM p ORDER BY p.tenant COLLATE "C", p.kind COLLATE "C", p.id COLLATE "C") AS p
	LEFT JOIN LATERAL (SELECT x.version FROM @ledger_papers AS x
		WHERE p.writes AND x.tenant = p.tenant AND x.kind = p.kind AND x.id = p.id FOR UPDATE) AS a ON TRUE
	LEFT JOIN LATERAL (SELECT x.version FROM @ledger_papers AS x
		WHERE NOT p.writes AND x.tenant = p.tenant AND x.kind = p.kind AND x.id = p.id FOR SHARE) AS b ON TRUE)
