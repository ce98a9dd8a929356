-- name: insert
-- Inserts new writes with their events, each unless it exists already, its business
-- operation was begun before (two that hold it conflict; one that has a key and does not
-- hold it is left to the caller), its queue has a head, the outbox has an entry of its
-- queue, or its pre-state was read before another write of its key digest was recorded
-- (newest: the number of the newest one then, -1 where none was read). $1 to $3: the
-- version of the program, the time of the change, and how far that may be in the past;
-- $4: the newest recorded time with which the clock is trusted; $5: whether the caller
-- has checked for these obstacles. If it waited for a transaction that made the same
-- and was rolled back, its time is stale, and it ends with an error.
WITH {guard}{documents},
i AS (SELECT * FROM {rows}
	AS i (id, tenant, destination, tool, structural_key, idempotency_key, key_digest, created, intent, step_of, workflow, correlation_id, newest, erased_key, terms,
		first, at, state, due, settled_at, queue, queued_behind, seq, body,
		before, evidence, mismatches, child_intent, owner, lease_until, lease_for, fence, blocks, waits)),
w AS (INSERT INTO @ledger_writes AS w (id, tenant, destination, tool, structural_key, idempotency_key, key_digest, created, intent, step_of,
		state, due, settled_at, queue, queued_behind, seq, body,
		before, evidence, mismatches, child_intent, owner, lease_until, lease_for, fence, holds, blocks, waits)
	SELECT i.id, i.tenant, i.destination, i.tool, i.structural_key, i.idempotency_key, NULLIF(i.key_digest, ''), i.created, i.intent, i.step_of,
		i.state, NULLIF(i.due, 0), NULLIF(i.settled_at, 0), NULLIF(i.queue, ''), NULLIF(i.queued_behind, ''), i.seq, i.body,
		i.before, i.evidence, i.mismatches, i.child_intent, i.owner, i.lease_until, i.lease_for, i.fence, i.blocks <> 0, NULLIF(i.blocks, 0), NULLIF(i.waits, '')
	FROM i CROSS JOIN g
	WHERE g.compatible_from <= $1 AND NOT g.standby AND g.now - $2::bigint BETWEEN 0 AND $3::bigint AND g.newest <= $4::bigint
		AND {owned:i.tenant}
		AND (i.newest < 0 OR NOT EXISTS (SELECT 1 FROM @ledger_search AS r
			WHERE r.tenant = i.tenant AND r.key_digest = i.key_digest AND r.key_digest <> '' AND r.n > i.newest))
		AND ($5::boolean
			OR NOT EXISTS (SELECT 1 FROM @ledger_outbox AS o WHERE o.key_digest = i.key_digest AND o.key_digest <> '' AND o.refused IS NULL OFFSET 0)
			AND (i.blocks <> 0 OR i.idempotency_key = '')
			AND NOT EXISTS (SELECT 1 FROM @ledger_writes AS p
				WHERE p.tenant = i.tenant AND p.tool = i.tool AND p.idempotency_key = i.idempotency_key AND p.blocks IS NOT NULL AND NOT p.holds OFFSET 0)
			AND NOT EXISTS (SELECT 1 FROM @ledger_writes AS p
				WHERE p.tenant = i.tenant AND p.tool = i.tool AND p.idempotency_key = i.erased_key AND p.blocks IS NOT NULL AND NOT p.holds OFFSET 0)){whole}
	ORDER BY i.id
	ON CONFLICT DO NOTHING
	RETURNING w.n, w.id, w.tenant, w.destination, {clock} AS stored),
x AS (SELECT * FROM {events} AS x (id, seq, body, evidence, mismatches, kind, settlement, at, sends, reads, saved)),
e AS (INSERT INTO @ledger_events (write, seq, body, evidence, mismatches)
	SELECT w.n, x.seq, x.body, x.evidence, x.mismatches
	FROM w JOIN x ON x.id = w.id),
{publish}r AS (INSERT INTO @ledger_unsealed (at, write, id, first, last)
	SELECT i.at, w.n, w.id, i.first, i.seq FROM w JOIN i ON i.id = w.id WHERE i.first <= i.seq),
s AS (INSERT INTO @ledger_search (n, id, tenant, workflow, correlation_id, key_digest)
	SELECT w.n, w.id, i.tenant, i.workflow, i.correlation_id, i.key_digest FROM w JOIN i ON i.id = w.id),
{terms}{written}
SELECT {state}, ARRAY(SELECT w.id FROM w), ARRAY(SELECT w.n / {timely} FROM w){answer} FROM g

-- name: update
-- Updates writes after more events, each if it is unchanged: same fence, same seq, and,
-- when it leaves its queue, no write that may be queued behind it, unless the caller
-- handles that. $1 to $3 as in insert, and as there it ends with an error if a lock
-- made its time stale.
WITH {guard}{documents},
i AS (SELECT * FROM {rows}
	AS i (id, was_fence, was_seq, alone, terms, first, at, state, due, settled_at, queue, queued_behind, seq, body,
		before, evidence, mismatches, child_intent, owner, lease_until, lease_for, fence, blocks, waits)),
w AS (UPDATE @ledger_writes AS w SET
		state = i.state, due = NULLIF(i.due, 0), settled_at = NULLIF(i.settled_at, 0), queue = NULLIF(i.queue, ''),
		queued_behind = NULLIF(i.queued_behind, ''), seq = i.seq, body = i.body, before = i.before, evidence = i.evidence,
		mismatches = i.mismatches, child_intent = i.child_intent, owner = i.owner, lease_until = i.lease_until,
		lease_for = i.lease_for, fence = i.fence, holds = w.holds AND i.blocks <> 0, blocks = NULLIF(i.blocks, 0), waits = NULLIF(i.waits, ''),
		followed = w.followed AND i.queue <> '', damaged = NULL
	FROM i CROSS JOIN g
	WHERE w.id = i.id AND w.fence = i.was_fence AND w.seq = i.was_seq AND NOT (i.alone AND w.followed)
		AND g.compatible_from <= $1 AND NOT g.standby AND g.now - $2::bigint BETWEEN 0 AND $3::bigint
		AND {kept:w.tenant}{whole}
	RETURNING w.n, w.id, w.tenant, w.destination, {clock} AS stored),
x AS (SELECT * FROM {events} AS x (id, seq, body, evidence, mismatches, kind, settlement, at, sends, reads, saved)),
e AS (INSERT INTO @ledger_events (write, seq, body, evidence, mismatches)
	SELECT w.n, x.seq, x.body, x.evidence, x.mismatches
	FROM w JOIN x ON x.id = w.id),
{publish}r AS (INSERT INTO @ledger_unsealed (at, write, id, first, last)
	SELECT i.at, w.n, w.id, i.first, i.seq FROM w JOIN i ON i.id = w.id WHERE i.first <= i.seq),
{terms}{written}
SELECT {state}, ARRAY(SELECT w.id FROM w), ARRAY(SELECT w.n / {timely} FROM w){answer} FROM g

-- name: terms
-- A line of i.terms is a term.
k AS (INSERT INTO @ledger_terms (lot, tenant, term, n, id)
	SELECT w.n / {lot}, w.tenant, t.term, w.n, w.id
	FROM w JOIN i ON i.id = w.id CROSS JOIN LATERAL unnest(string_to_array(i.terms, E'\n')) AS t (term)
	ON CONFLICT DO NOTHING)

-- name: publish
u AS (INSERT INTO @ledger_unpublished (at, tenant, write, seq, kind, settlement, destination, sends, reads, saved)
	SELECT x.at, w.tenant, w.id, x.seq, x.kind, x.settlement, w.destination, x.sends, x.reads, x.saved
	FROM w JOIN x ON x.id = w.id WHERE x.kind <> '' ORDER BY x.id, x.seq),

-- name: get
-- One write of one tenant.
WITH {guard}
SELECT {state}, {row} FROM g LEFT JOIN @ledger_writes AS w ON w.id = $1 AND w.tenant = $2

-- name: find
-- One write, with the state of the database. The columns of the write are NULL when it
-- does not exist.
WITH {guard}
SELECT {state}, {row} FROM g LEFT JOIN @ledger_writes AS w ON w.id = $1

-- name: find_row
-- One write, in a transaction that has read the state of the database.
SELECT {row} FROM @ledger_writes AS w WHERE w.id = $1

-- name: find_rows
SELECT {row} FROM @ledger_writes AS w WHERE w.id = ANY ($1::text[])

-- name: lock
-- Locks one write.
SELECT {row} FROM @ledger_writes AS w WHERE w.id = $1 FOR UPDATE

-- name: lock_all
-- Locks some writes in one order.
SELECT w.id FROM @ledger_writes AS w WHERE w.id = ANY ($1::text[]) ORDER BY w.id FOR UPDATE

-- name: lock_rows
-- Locks some writes of a tenant in one order.
SELECT {row} FROM @ledger_writes AS w WHERE w.id = ANY ($2::text[]) AND w.tenant = $1::text ORDER BY w.id FOR UPDATE

-- name: events
-- The events of one write of one tenant, with how many there should be.
WITH {guard}
SELECT {state}, w.n, w.seq, w.tombstone, e.seq, e.body, e.evidence, e.mismatches
FROM g LEFT JOIN @ledger_writes AS w ON w.id = $1 AND w.tenant = $2
LEFT JOIN @ledger_events AS e ON e.write = w.n
ORDER BY e.seq

-- name: list
-- Writes of one tenant in some states, newest first, created before number $3.
WITH {guard},
found AS (
	SELECT x.id, x.n FROM unnest($2::text[]) AS s (state) CROSS JOIN LATERAL (
		SELECT w.id, w.n FROM @ledger_writes AS w
		WHERE w.tenant = $1 AND w.state = s.state AND w.n < $3
		ORDER BY w.n DESC LIMIT $4) AS x
	ORDER BY x.n DESC LIMIT $4)
SELECT {state}, {row} FROM g LEFT JOIN found AS f ON TRUE LEFT JOIN LATERAL (
	SELECT x.* FROM @ledger_writes AS x WHERE x.id = f.id OFFSET 0) AS w ON TRUE
ORDER BY f.n DESC

-- name: of_record
-- The same for the writes of one record that are open or have a pending recheck: the
-- head of the queue, and the others.
WITH {guard}
SELECT {state}, {row} FROM g LEFT JOIN (
	SELECT h.* FROM @ledger_writes AS h WHERE h.queue = $5 AND h.queued_behind IS NULL
	UNION ALL
	SELECT o.* FROM @ledger_writes AS o
	WHERE o.key_digest = $5 AND (o.state <> 'settled' OR o.due IS NOT NULL) AND (o.queue IS NULL OR o.queued_behind IS NOT NULL)
	OFFSET 0) AS w
	ON w.tenant = $1 AND w.state = ANY ($2::text[]) AND w.n < $3
ORDER BY w.n DESC LIMIT $4

-- name: precheck
-- Whether write $1 of tenant $2 exists, whether one with key digest $3 is in the queue
-- or held, and the number of the newest write of that key digest.
WITH {guard}
SELECT {state},
	EXISTS (SELECT 1 FROM @ledger_writes AS w WHERE w.id = $1 AND w.tenant = $2),
	EXISTS (SELECT 1 FROM @ledger_writes AS h WHERE h.queue = $3 AND h.queued_behind IS NULL)
		OR EXISTS (SELECT 1 FROM @ledger_writes AS o
			WHERE o.key_digest = $3 AND (o.state <> 'settled' OR o.due IS NOT NULL) AND (o.queue IS NULL OR o.queued_behind IS NOT NULL)
				AND (o.queue IS NOT NULL OR o.state = 'held')),
	coalesce((SELECT max(s.n) FROM @ledger_search AS s WHERE s.tenant = $2 AND s.key_digest = $3 AND s.key_digest <> ''), 0)
FROM g

-- name: newer_of_record
-- Whether a write of tenant $1 with key digest $2 is newer than a number.
SELECT EXISTS (SELECT 1 FROM @ledger_search AS s WHERE s.tenant = $1 AND s.key_digest = $2 AND s.key_digest <> '' AND s.n > $3)

-- name: operation
-- Writes that may block another one of their business operation, open ones first, then
-- the newest: what is open, or was settled from a time on, except the steps of one
-- workflow. The write that holds the operation is always included.
SELECT w.holds, {row} FROM unnest($3::text[]) AS k (key) CROSS JOIN LATERAL (
	SELECT x.* FROM @ledger_writes AS x
	WHERE x.tenant = $1 AND x.tool = $2 AND x.idempotency_key = k.key AND x.blocks >= $4 AND NOT x.holds
		AND (x.step_of = '' OR x.step_of <> $5)
	UNION ALL
	SELECT x.* FROM @ledger_writes AS x
	WHERE x.tenant = $1 AND x.tool = $2 AND x.idempotency_key = k.key AND x.holds) AS w
ORDER BY w.blocks DESC, w.created DESC, w.n DESC

-- name: operation_holders
-- Writes that may block another one of a business operation, open ones first, then the
-- newest.
WITH {guard}
SELECT {state}, {row} FROM g LEFT JOIN (
	SELECT x.* FROM unnest($3::text[]) AS k (key) CROSS JOIN LATERAL (
		SELECT b.* FROM @ledger_writes AS b
		WHERE b.tenant = $1 AND b.tool = $2 AND b.idempotency_key = k.key AND b.blocks IS NOT NULL AND NOT b.holds
		UNION ALL
		SELECT h.* FROM @ledger_writes AS h
		WHERE h.tenant = $1 AND h.tool = $2 AND h.idempotency_key = k.key AND h.holds) AS x
	ORDER BY x.blocks DESC, x.created DESC, x.n DESC LIMIT $4) AS w ON TRUE
ORDER BY w.blocks DESC, w.created DESC, w.n DESC

-- name: release_operation
-- These writes no longer hold their business operation.
UPDATE @ledger_writes SET holds = FALSE WHERE id = ANY ($1::text[]) AND holds

-- name: mark_damaged
-- Claims skip a row that cannot be read until it is repaired.
UPDATE @ledger_writes SET damaged = $2 WHERE id = $1

-- name: tenants
SELECT w.tenant FROM @ledger_writes AS w UNION SELECT x.tenant FROM @ledger_documents AS x ORDER BY 1

-- name: lifetimes
WITH {guard}
SELECT {state}, {row}
FROM g LEFT JOIN (SELECT * FROM @ledger_writes AS x WHERE x.id > $1::text ORDER BY x.id LIMIT $2::bigint) AS w ON TRUE
ORDER BY w.id
