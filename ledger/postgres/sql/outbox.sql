-- name: enqueue
-- Runs in the transaction of the caller. Only the first entry of an empty outbox
-- notifies workers: a commit with a notification waits for all other such commits, and
-- busy workers need none. It returns -1 in a partition that does not own the tenant, and
-- keeps the tenant there until the caller's transaction ends.
WITH owner AS MATERIALIZED (SELECT 1 FROM @ledger_tenants AS t WHERE t.tenant = $2::text AND t.state = 'active' FOR SHARE),
owned AS MATERIALIZED (SELECT 1 FROM @ledger_meta AS m WHERE m.one = 1 AND (m.partition = '' OR EXISTS (SELECT 1 FROM owner))),
entry AS (INSERT INTO @ledger_outbox (id, tenant, key_digest, intent)
	SELECT $1::text, $2::text, $3::text, $4::text
	WHERE NOT EXISTS (SELECT 1 FROM @ledger_notes AS o WHERE o.name = 'outbox/full' AND length(o.value) > 0)
		AND EXISTS (SELECT 1 FROM owned)
	RETURNING n)
SELECT (SELECT count(*) FROM entry) - CASE WHEN EXISTS (SELECT 1 FROM owned) THEN 0 ELSE 1 END,
	CASE WHEN EXISTS (SELECT 1 FROM entry) AND NOT EXISTS (SELECT 1 FROM @ledger_outbox AS o WHERE o.refused IS NULL)
		THEN pg_notify('ledger_wake', '')::text ELSE '' END

-- name: enqueue_quietly
-- The same without a notification.
WITH owner AS MATERIALIZED (SELECT 1 FROM @ledger_tenants AS t WHERE t.tenant = $2::text AND t.state = 'active' FOR SHARE),
owned AS MATERIALIZED (SELECT 1 FROM @ledger_meta AS m WHERE m.one = 1 AND (m.partition = '' OR EXISTS (SELECT 1 FROM owner))),
entry AS (INSERT INTO @ledger_outbox (id, tenant, key_digest, intent)
	SELECT $1::text, $2::text, $3::text, $4::text
	WHERE NOT EXISTS (SELECT 1 FROM @ledger_notes AS o WHERE o.name = 'outbox/full' AND length(o.value) > 0)
		AND EXISTS (SELECT 1 FROM owned)
	RETURNING n)
SELECT (SELECT count(*) FROM entry) - CASE WHEN EXISTS (SELECT 1 FROM owned) THEN 0 ELSE 1 END, ''

-- name: outbox_size
-- Without what a move or a decision has left: it is never taken in here.
SELECT count(*), coalesce(min(o.enqueued), 0) FROM @ledger_outbox AS o
WHERE o.refused IS NULL AND NOT EXISTS (SELECT 1 FROM @ledger_tenants AS f WHERE f.tenant = o.tenant AND f.state = 'moved')

-- name: queue_heads
-- Locks the first entry of some queues: as many queues after one, in the order of their
-- digests. The recursion jumps from one queue to the next, so that a long queue costs
-- no more than a short one. Entries that another transaction is taking in are skipped,
-- and so are the rest of their queues.
SELECT o.n, o.id, o.tenant, o.key_digest, o.intent
FROM @ledger_outbox AS o
WHERE o.refused IS NULL AND o.n = ANY (ARRAY(
	WITH RECURSIVE walk AS (
		(SELECT h.key_digest, h.n, 1 AS step FROM @ledger_outbox AS h
		WHERE h.refused IS NULL AND h.key_digest > $1::text
		ORDER BY h.key_digest, h.n LIMIT 1)
		UNION ALL
		SELECT x.key_digest, x.n, p.step + 1 FROM walk AS p CROSS JOIN LATERAL (
			SELECT h.key_digest, h.n FROM @ledger_outbox AS h
			WHERE h.refused IS NULL AND h.key_digest > p.key_digest
			ORDER BY h.key_digest, h.n LIMIT 1) AS x
		WHERE p.step < $2::int)
	SELECT walk.n FROM walk))
ORDER BY o.key_digest
FOR UPDATE SKIP LOCKED

-- name: queue_head
-- Locks one entry, if it is the first of its queue and no other transaction is taking
-- it in.
SELECT o.n, o.id, o.tenant, o.key_digest, o.intent
FROM @ledger_outbox AS o
WHERE o.n = $1::bigint AND o.refused IS NULL AND NOT EXISTS (
	SELECT 1 FROM @ledger_outbox AS p WHERE p.key_digest = o.key_digest AND p.refused IS NULL AND p.n < o.n)
FOR UPDATE SKIP LOCKED

-- name: entries_of
-- Locks the first entries of one queue. It waits for a transaction that is taking them
-- in.
SELECT o.n, o.id, o.tenant, o.key_digest, o.intent
FROM @ledger_outbox AS o
WHERE o.key_digest = $1::text AND o.refused IS NULL
ORDER BY o.n
LIMIT $2::int
FOR UPDATE

-- name: entry
-- The entry of one write; an open one before a refused one.
SELECT o.key_digest, coalesce(o.refused, ''), o.tenant
FROM @ledger_outbox AS o
WHERE o.id = $1::text
ORDER BY o.refused IS NOT NULL, o.n DESC
LIMIT 1

-- name: delete_entries
DELETE FROM @ledger_outbox WHERE n = ANY ($1::bigint[])

-- name: refuse_entry
UPDATE @ledger_outbox SET refused = $2::text WHERE n = $1::bigint AND refused IS NULL

-- name: refused_entries
SELECT o.tenant, o.id, o.refused, o.enqueued FROM @ledger_outbox AS o
WHERE o.refused IS NOT NULL ORDER BY o.n LIMIT $1::bigint

-- name: delete_refused
DELETE FROM @ledger_outbox WHERE n = ANY (ARRAY(
	SELECT o.n FROM @ledger_outbox AS o WHERE o.refused IS NOT NULL AND o.enqueued <= $1::bigint AND o.tenant <> ALL ($3::text[]) ORDER BY o.n LIMIT $2::bigint))

-- name: entries_of_records
-- Open entries of the outbox about some records of a tenant.
SELECT o.id FROM @ledger_outbox AS o WHERE o.key_digest = ANY ($2::text[]) AND o.refused IS NULL AND o.tenant = $1::text ORDER BY o.id

-- name: delete_refused_of_records
-- Deletes refused entries of the outbox about some records of a tenant.
DELETE FROM @ledger_outbox AS o WHERE o.refused IS NOT NULL AND o.tenant = $1::text AND o.key_digest = ANY ($2::text[])
