-- name: tombstones
-- Locks tombstones, oldest first, after a row: those to be deleted.
SELECT {row}
FROM @ledger_writes AS w
WHERE w.state = 'settled' AND w.due IS NULL AND w.tombstone
	AND w.settled_at BETWEEN $1::bigint AND $3::bigint AND (w.settled_at > $1::bigint OR w.n > $2::bigint)
ORDER BY w.settled_at, w.n
LIMIT $4::int
FOR UPDATE SKIP LOCKED

-- name: compactable
-- Locks settled writes of one tenant to one destination without a pending recheck,
-- oldest first, after a row: those to become tombstones.
SELECT {row}
FROM @ledger_writes AS w
WHERE w.state = 'settled' AND w.due IS NULL AND NOT w.tombstone AND w.tenant = $5::text AND w.destination = $6::text
	AND w.settled_at BETWEEN $1::bigint AND $3::bigint AND (w.settled_at > $1::bigint OR w.n > $2::bigint)
ORDER BY w.settled_at, w.n
LIMIT $4::int
FOR UPDATE SKIP LOCKED

-- name: compactable_parties
-- The tenants and destinations that have settled writes without a pending recheck that
-- are no tombstones, and when the oldest of each was settled. The recursion jumps from
-- one to the next in the index and reads nothing between.
WITH RECURSIVE walk AS (
	(SELECT w.tenant, w.destination, w.settled_at FROM @ledger_writes AS w
	WHERE w.state = 'settled' AND w.due IS NULL AND NOT w.tombstone AND w.settled_at IS NOT NULL
	ORDER BY w.tenant, w.destination, w.settled_at LIMIT 1)
	UNION ALL
	SELECT x.tenant, x.destination, x.settled_at FROM walk AS p CROSS JOIN LATERAL (
		SELECT w.tenant, w.destination, w.settled_at FROM @ledger_writes AS w
		WHERE w.state = 'settled' AND w.due IS NULL AND NOT w.tombstone AND w.settled_at IS NOT NULL
			AND (w.tenant, w.destination) > (p.tenant, p.destination)
		ORDER BY w.tenant, w.destination, w.settled_at LIMIT 1) AS x)
SELECT p.tenant, p.destination, p.settled_at FROM walk AS p

-- name: queued_behind
-- The writes among these that another one waits for.
SELECT w.queued_behind FROM @ledger_writes AS w WHERE w.queued_behind = ANY ($1::text[])

-- name: compact
UPDATE @ledger_writes AS w SET tombstone = TRUE, body = i.body, fence = i.fence, owner = '', lease_until = 0, lease_for = 0,
	intent = NULL, before = NULL, evidence = NULL, mismatches = NULL, child_intent = NULL
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS i (id, body, fence)
WHERE w.id = i.id

-- name: delete_writes
DELETE FROM @ledger_writes WHERE id = ANY ($1::text[])

-- name: delete_events
DELETE FROM @ledger_events WHERE write = ANY ($1::bigint[])

-- name: events_size
-- How many bytes the events of these writes have.
SELECT coalesce(sum(octet_length(e.body) + coalesce(octet_length(e.evidence), 0) + coalesce(octet_length(e.mismatches), 0)), 0)::bigint
FROM @ledger_events AS e WHERE e.write = ANY ($1::bigint[])

-- name: erase_writes
-- Removes the contents of writes. A write whose key was erased no longer holds its
-- operation, since another write of the same operation may have been erased before. It
-- blocks others as before.
UPDATE @ledger_writes AS w SET tombstone = TRUE, body = i.body, fence = i.fence, owner = '', lease_until = 0, lease_for = 0,
	intent = NULL, before = NULL, evidence = NULL, mismatches = NULL, child_intent = NULL,
	idempotency_key = i.idempotency_key, step_of = '', holds = FALSE
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) AS i (id, body, fence, idempotency_key)
WHERE w.id = i.id
