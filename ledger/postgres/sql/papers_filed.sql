o AS MATERIALIZED (
	SELECT p.*, nextval(pg_get_serial_sequence({table}, 'n')) AS n
	FROM (SELECT * FROM p WHERE p.writes AND p.version = 0 AND EXISTS (SELECT 1 FROM {ready}) ORDER BY p.ord) AS p),
pi AS (INSERT INTO @ledger_papers (n, tenant, kind, id, binder, subject, trace, state, due, done, body, version, created, updated)
	SELECT o.n, o.tenant, o.kind, o.id, o.binder, o.subject, o.trace, o.state, NULLIF(o.due, 0), o.done, o.body, 1, g.now, g.now
	FROM o CROSS JOIN g
	ORDER BY o.tenant COLLATE "C", o.kind COLLATE "C", o.id COLLATE "C"),
pu AS (UPDATE @ledger_papers AS x SET
		state = p.state, due = NULLIF(p.due, 0), done = p.done, body = p.body, version = x.version + 1, updated = greatest(x.updated, g.now)
	FROM p CROSS JOIN g
	WHERE p.writes AND p.version > 0 AND x.tenant = p.tenant AND x.kind = p.kind AND x.id = p.id AND x.version = p.version
		AND EXISTS (SELECT 1 FROM {ready})
	RETURNING p.ord, x.binder, x.subject, x.trace, x.created, x.updated)
