g AS MATERIALIZED (
	SELECT m.version, m.compatible_from, m.newest, m.chronicle, m.found, m.found_tenant, m.found_kind, m.found_paper, pg_is_in_recovery() AS standby,
		(extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000 AS now,
		CASE WHEN current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')
			THEN set_config('synchronous_commit', 'on', true) ELSE '' END AS durable
	FROM @ledger_meta AS m
	WHERE m.one = 1)
