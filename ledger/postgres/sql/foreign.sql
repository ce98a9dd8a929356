SELECT a.what || ' ' || a.name || ' on ' || c.relname
FROM pg_catalog.pg_class AS c JOIN (
	SELECT 'trigger' AS what, t.tgname AS name, t.tgrelid AS class FROM pg_catalog.pg_trigger AS t WHERE NOT t.tgisinternal
	UNION ALL
	SELECT 'rule', r.rulename, r.ev_class FROM pg_catalog.pg_rewrite AS r WHERE r.rulename <> '_RETURN') AS a ON a.class = c.oid
WHERE c.relname LIKE 'ledger\_%' AND c.relnamespace = (SELECT m.relnamespace FROM pg_catalog.pg_class AS m WHERE m.oid = '@ledger_meta'::regclass)
ORDER BY 1
