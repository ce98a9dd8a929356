-- Run by the caller, in the caller's transaction. Workers are woken by the
-- first entry of an outbox that was empty: a notification makes its commit wait
-- for every other one that carries one, and those who have work need none.
WITH entry AS (INSERT INTO @ledger_outbox (id, tenant, key_digest, intent)
	SELECT $1::text, $2::text, $3::text, $4::text
	WHERE NOT EXISTS (SELECT 1 FROM @ledger_notes AS o WHERE o.name = 'outbox/full' AND length(o.value) > 0)
	RETURNING n)
SELECT (SELECT count(*) FROM entry),
	CASE WHEN EXISTS (SELECT 1 FROM entry) AND NOT EXISTS (SELECT 1 FROM @ledger_outbox AS o WHERE o.refused IS NULL)
		THEN pg_notify('ledger_wake', '')::text ELSE '' END
