-- name: tombstones
-- Tombstones, oldest first, after a row: those to be deleted.
SELECT {row}
FROM ledger_writes AS w
WHERE w.state = 'settled' AND w.due IS NULL AND w.tombstone = 1
	AND w.settled_at BETWEEN ?1 AND ?3 AND (w.settled_at > ?1 OR w.n > ?2)
ORDER BY w.settled_at, w.n
LIMIT ?4

-- name: compactable
-- Settled writes of one tenant to one destination without a pending recheck, oldest
-- first, after a row: those to become tombstones.
SELECT {row}
FROM ledger_writes AS w INDEXED BY ledger_writes_compactable
WHERE w.state = 'settled' AND w.due IS NULL AND w.tombstone = 0 AND w.tenant = ?5 AND w.destination = ?6
	AND w.settled_at BETWEEN ?1 AND ?3 AND (w.settled_at > ?1 OR w.n > ?2)
ORDER BY w.settled_at, w.n
LIMIT ?4

-- name: next_compactable_party
-- The tenant and destination after another one that have a settled write without a
-- pending recheck that is no tombstone, and when the oldest of them was settled. The time
-- is compared as in next_party.
SELECT w.tenant, w.destination, w.settled_at
FROM ledger_writes AS w INDEXED BY ledger_writes_compactable
WHERE w.state = 'settled' AND w.due IS NULL AND w.tombstone = 0 AND (w.tenant, w.destination, w.settled_at) > (?1, ?2, 9223372036854775807)
ORDER BY w.tenant, w.destination, w.settled_at
LIMIT 1

-- name: has_follower
SELECT 1 FROM ledger_writes AS w WHERE w.queued_behind = ?1

-- name: clear_intent
UPDATE ledger_writes SET intent = '' WHERE n = ?1

-- name: delete_events
DELETE FROM ledger_events WHERE write = ?1

-- name: events_size
-- How many bytes the events of a write have.
SELECT coalesce(sum(octet_length(e.body) + coalesce(octet_length(e.evidence), 0) + coalesce(octet_length(e.mismatches), 0)), 0)
FROM ledger_events AS e WHERE e.write = ?1

-- name: delete_write
DELETE FROM ledger_writes WHERE n = ?1

-- name: erase_write
UPDATE ledger_writes SET idempotency_key = ?2, step_of = NULL, intent = '' WHERE n = ?1
