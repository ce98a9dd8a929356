-- name: meta_table
-- The one row that every statement reads. The first four columns never change their
-- meaning, so that an older program can tell that the ledger has become newer than
-- itself.
CREATE TABLE IF NOT EXISTS @ledger_meta (
	one             INT     NOT NULL PRIMARY KEY CHECK (one = 1),
	version         INT     NOT NULL,  -- the number of the last migration
	compatible_from INT     NOT NULL,  -- the version of the oldest program that can still work
	newest          BIGINT  NOT NULL,  -- about the newest time given to an entry; ns since 1970, UTC
	sealing         BOOLEAN NOT NULL DEFAULT FALSE,  -- a sealer has begun
	-- The time of the newest row of ledger_unsealed that was deleted before a sealer
	-- began, 0 for none: commits until then may have none.
	kept_since      BIGINT  NOT NULL DEFAULT 0,
	-- The key of the digests of business keys (see ledger.KeyDigests): 64 hex digits, or
	-- the id of the redaction key under which it is sealed, a colon, and the sealed key.
	digest_key      TEXT    NOT NULL DEFAULT ''
);

INSERT INTO @ledger_meta (one, version, compatible_from, newest) VALUES (1, 0, 1, 0) ON CONFLICT DO NOTHING;

-- name: guard
g AS MATERIALIZED (
	SELECT m.version, m.compatible_from, m.newest, m.sealing, m.partition <> '' AS fenced, {standby} AS standby,
		(extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000 AS now,
		{durable} AS durable
	FROM @ledger_meta AS m
	WHERE m.one = 1)

-- name: durable
CASE WHEN current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')
			THEN set_config('synchronous_commit', 'on', true) ELSE '' END

-- name: state
-- The state of the database only.
WITH {guard} SELECT {state} FROM g

-- name: tick
-- Records the newest time, unless another transaction is doing so.
UPDATE @ledger_meta SET newest = $1
WHERE one = (SELECT m.one FROM @ledger_meta AS m WHERE m.newest < $2 FOR UPDATE SKIP LOCKED)

-- name: digest_key
SELECT digest_key FROM @ledger_meta

-- name: cached
-- Whether sequences of the ledger give numbers out in advance. Other tables of the schema
-- may begin with the same word.
SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_sequences AS s WHERE s.cache_size > 1
	AND s.sequencename IN ('ledger_writes_n_seq', 'ledger_outbox_n_seq', 'ledger_documents_n_seq', 'ledger_unpublished_n_seq', 'ledger_unsealed_ticket_seq')
	AND s.schemaname = (SELECT n.nspname FROM pg_catalog.pg_class AS m JOIN pg_catalog.pg_namespace AS n ON n.oid = m.relnamespace WHERE m.oid = '@ledger_meta'::regclass))

-- name: foreign
SELECT a.what || ' ' || a.name || ' on ' || c.relname
FROM pg_catalog.pg_class AS c JOIN (
	SELECT 'trigger' AS what, t.tgname AS name, t.tgrelid AS class FROM pg_catalog.pg_trigger AS t WHERE NOT t.tgisinternal
	UNION ALL
	SELECT 'rule', r.rulename, r.ev_class FROM pg_catalog.pg_rewrite AS r WHERE r.rulename <> '_RETURN') AS a ON a.class = c.oid
WHERE c.relname LIKE 'ledger\_%' AND c.relnamespace = (SELECT m.relnamespace FROM pg_catalog.pg_class AS m WHERE m.oid = '@ledger_meta'::regclass)
ORDER BY 1
