pi AS (INSERT INTO @ledger_papers (tenant, kind, id, binder, subject, trace, state, due, done, body, version, created, updated, came)
	SELECT p.tenant, p.kind, p.id, p.binder, p.subject, p.trace, p.state, p.due, p.done, p.body, 1, g.now, g.now, g.now + p.ord
	FROM p CROSS JOIN g
	WHERE p.writes AND p.version = 0 AND EXISTS (SELECT 1 FROM {ready})
	ORDER BY p.tenant COLLATE "C", p.kind COLLATE "C", p.id COLLATE "C"),
pm AS (INSERT INTO @ledger_unsealed (mark)
	SELECT p.mark FROM p CROSS JOIN g
	WHERE g.chronicle AND p.mark <> '' AND EXISTS (SELECT 1 FROM {ready})
		AND (g.found_tenant IS NULL OR (p.tenant COLLATE "C", p.kind COLLATE "C", p.id COLLATE "C") <= (g.found_tenant, g.found_kind, g.found_paper))
	ORDER BY p.ord),
pu AS (UPDATE @ledger_papers AS x SET
		state = p.state, due = p.due, done = p.done, body = p.body, version = x.version + 1, updated = greatest(x.updated, g.now)
	FROM p CROSS JOIN g
	WHERE p.writes AND p.version > 0 AND x.tenant = p.tenant AND x.kind = p.kind AND x.id = p.id
		AND EXISTS (SELECT 1 FROM {ready})
	RETURNING p.ord, x.binder, x.subject, x.trace, x.created, x.updated)
