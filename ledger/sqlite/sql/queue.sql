-- name: last
-- The last write in a queue.
SELECT {row}
FROM ledger_writes AS w
WHERE w.key_digest = ?1 AND w.place IS NOT NULL
ORDER BY w.place DESC
LIMIT 1

-- name: next
-- The first write in a queue after a place.
SELECT {row}
FROM ledger_writes AS w
WHERE w.key_digest = ?1 AND w.place > ?2
ORDER BY w.place
LIMIT 1

-- name: before
-- The id of the last write in a queue before a place.
SELECT w.id
FROM ledger_writes AS w
WHERE w.key_digest = ?1 AND w.place < ?2
ORDER BY w.place DESC
LIMIT 1

-- name: next_party
-- The party after another one, and when its oldest work is due. SQLite begins to read at
-- the first row whose values equal those of a comparison: the largest time there is makes
-- it skip the other party's work.
SELECT w.destination, w.tenant, w.state, w.due
FROM ledger_writes AS w
WHERE w.due IS NOT NULL AND w.damaged IS NULL AND (w.destination, w.tenant, w.state, w.due) > (?1, ?2, ?3, 9223372036854775807)
ORDER BY w.destination, w.tenant, w.state, w.due
LIMIT 1

-- name: due
-- What a claim may take from one party now, oldest due first.
SELECT w.n, w.due
FROM ledger_writes AS w
WHERE w.damaged IS NULL AND w.destination = ?1 AND w.tenant = ?2 AND w.state = ?3 AND w.due <= ?4 AND w.lease_until <= ?4
ORDER BY w.due
LIMIT ?5

-- name: held_or_in_review
-- Writes that wait for a reviewer and have no due time at which a claim would read
-- them.
SELECT {row}
FROM ledger_writes AS w
WHERE w.due IS NULL AND w.state <> 'settled' AND w.state IN ('held', 'review') AND w.damaged IS NULL
LIMIT ?1

-- name: queue_stats
-- Open writes, counted: those with a due time, then those without. The lease of one that was
-- handed over is no worker's.
SELECT w.tenant, w.destination, w.state, count(*),
	sum(w.due <= ?1 AND (w.lease_until = 0 OR instr(w.body, '"owner":"dispatched"'))), sum(w.lease_until > ?1 AND NOT instr(w.body, '"owner":"dispatched"')),
	sum(w.due <= ?1 AND w.lease_until > 0 AND w.lease_until <= ?1 AND NOT instr(w.body, '"owner":"dispatched"')), 0,
	min(iif(w.due <= ?1 AND (w.lease_until <= ?1 OR instr(w.body, '"owner":"dispatched"')), w.due, NULL)), min(w.created), sum(octet_length(w.intent))
FROM ledger_writes AS w
WHERE w.due IS NOT NULL AND w.damaged IS NULL
GROUP BY w.destination, w.tenant, w.state
UNION ALL
SELECT w.tenant, w.destination, w.state, count(*),
	0, sum(w.lease_until > ?1), 0, sum(w.queued_behind IS NOT NULL AND w.lease_until <= ?1),
	NULL, min(w.created), sum(octet_length(w.intent))
FROM ledger_writes AS w
WHERE w.due IS NULL AND w.state <> 'settled' AND w.damaged IS NULL
GROUP BY w.destination, w.tenant, w.state

-- name: damaged_writes
SELECT w.tenant, w.id, w.damaged, w.created
FROM ledger_writes AS w
WHERE w.damaged IS NOT NULL
ORDER BY w.n
LIMIT ?1
