-- name: unsealed
-- Returns nothing before a sealer has begun, and nothing of a tenant that is being moved.
WITH {guard}
SELECT {state}, coalesce(u.ticket, 0), coalesce(u.at, 0), coalesce(u.write, 0), coalesce(u.id, ''), coalesce(u.first, 0), coalesce(u.last, 0), u.mark,
	coalesce(w.tenant, ''), CASE WHEN u.first = 1 THEN w.intent END
FROM g LEFT JOIN LATERAL (SELECT * FROM @ledger_unsealed AS x
	WHERE x.ticket > $1::bigint AND (NOT g.fenced OR NOT EXISTS (SELECT 1 FROM @ledger_tenants AS f
		WHERE f.state <> 'active' AND f.tenant = coalesce((SELECT y.tenant FROM @ledger_writes AS y WHERE y.id = x.id), x.mark::json ->> 'tenant')))
	ORDER BY x.ticket LIMIT $2::bigint) AS u ON g.sealing
LEFT JOIN @ledger_writes AS w ON w.id = u.id
ORDER BY u.ticket

-- name: unsealed_events
-- The events of runs: of each write from one number to another.
SELECT i.ord, e.body, e.evidence, e.mismatches
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS i (write, first, last, ord)
JOIN @ledger_events AS e ON e.write = i.write AND e.seq BETWEEN i.first AND i.last
ORDER BY i.ord, e.seq

-- name: still_unsealed
-- Those that are still not sealed.
SELECT u.ticket FROM @ledger_unsealed AS u WHERE u.ticket = ANY ($1::bigint[])

-- name: unsealed_writes
-- The writes with unsealed events.
SELECT u.write FROM @ledger_unsealed AS u WHERE u.write IS NOT NULL LIMIT $1::bigint

-- name: delete_unsealed
DELETE FROM @ledger_unsealed WHERE ticket = ANY ($1::bigint[])

-- name: insert_marks
-- Records marks of changes that are no events.
INSERT INTO @ledger_unsealed (at, mark)
SELECT $1::bigint, m.mark FROM unnest($2::text[]) WITH ORDINALITY AS m (mark, ord) ORDER BY m.ord

-- name: hold_sealing
-- Whether a sealer has begun. None does before this transaction ends, so that it may
-- delete what is not sealed.
SELECT m.sealing FROM @ledger_meta AS m WHERE m.one = 1 FOR SHARE

-- name: lock_sealing
-- The same for the only transaction that may change it.
SELECT m.sealing, m.kept_since FROM @ledger_meta AS m WHERE m.one = 1 FOR UPDATE

-- name: begin_sealing
UPDATE @ledger_meta SET sealing = TRUE

-- name: delete_old_unsealed
-- Of the oldest rows those up to a time, and returns how many.
WITH d AS (DELETE FROM @ledger_unsealed AS u
	WHERE u.at <= $1::bigint AND u.ticket = ANY (ARRAY(SELECT x.ticket FROM @ledger_unsealed AS x ORDER BY x.ticket LIMIT $2::bigint))
	RETURNING u.at),
m AS (UPDATE @ledger_meta SET kept_since = greatest(kept_since, (SELECT max(d.at) FROM d)) WHERE EXISTS (SELECT 1 FROM d))
SELECT count(*) FROM d

-- name: delete_pruned_unsealed
-- The rows whose events were pruned, which has a mark.
DELETE FROM @ledger_unsealed AS u WHERE u.write IS NOT NULL
	AND NOT EXISTS (SELECT 1 FROM @ledger_events AS e WHERE e.write = u.write AND e.seq BETWEEN u.first AND u.last)

-- name: delete_marks
-- The marks of documents, whose names are erased where there is no sealer.
DELETE FROM @ledger_unsealed AS u
WHERE (u.mark::json ->> 'tenant', u.mark::json ->> 'paper_kind', u.mark::json ->> 'paper_id')
	IN (SELECT p.tenant, p.kind, p.id FROM unnest($1::text[], $2::text[], $3::text[]) AS p (tenant, kind, id))
