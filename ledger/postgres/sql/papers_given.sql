p AS MATERIALIZED (SELECT * FROM unnest({parameters}) WITH ORDINALITY
	AS p (writes, tenant, kind, id, binder, subject, trace, state, due, done, body, version, mark, ord)),
{held},
ok AS MATERIALIZED (
	SELECT 1 FROM g
	WHERE g.compatible_from <= $1 AND NOT g.standby AND NOT EXISTS (SELECT 1 FROM h WHERE h.have <> h.version)
		AND {clock} - g.now <= {lag} AND {unmoved})
