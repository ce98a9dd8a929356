-- The same where nobody is to be woken.
WITH entry AS (INSERT INTO @ledger_outbox (id, tenant, key_digest, intent)
	SELECT $1::text, $2::text, $3::text, $4::text
	WHERE NOT EXISTS (SELECT 1 FROM @ledger_notes AS o WHERE o.name = 'outbox/full' AND length(o.value) > 0)
	RETURNING n)
SELECT (SELECT count(*) FROM entry), ''
