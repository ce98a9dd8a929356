-- name: find
SELECT {row}
FROM ledger_writes AS w
WHERE w.id = ?1

-- name: numbered
SELECT {row}
FROM ledger_writes AS w
WHERE w.n = ?1

-- name: get
-- One write of one tenant, with the clock and the version. The columns of the write are
-- NULL when it does not exist.
SELECT m.version, m.compatible_from, m.newest, {row}
FROM ledger_meta AS m LEFT JOIN ledger_writes AS w ON w.id = ?2 AND w.tenant = ?1

-- name: events
SELECT e.body, e.evidence, e.mismatches
FROM ledger_events AS e
WHERE e.write = ?1
ORDER BY e.seq

-- name: of_record
-- Writes about one record that are open or have a pending recheck, newest first,
-- created before number ?3, in the states ?4. Other settled writes are not read.
SELECT {row}
FROM (
	SELECT l.n FROM ledger_writes AS l INDEXED BY ledger_writes_queue WHERE l.key_digest = ?1 AND l.place IS NOT NULL
	UNION ALL
	SELECT b.n FROM ledger_writes AS b INDEXED BY ledger_writes_unordered WHERE b.key_digest = ?1 AND b.place IS NULL AND (b.state <> 'settled' OR b.due IS NOT NULL)
) AS of CROSS JOIN ledger_writes AS w ON w.n = of.n
WHERE w.tenant = ?2 AND w.n < ?3 AND instr(?4, ',' || w.state || ',')
ORDER BY w.n DESC
LIMIT ?5

-- name: precheck
-- With the clock and the version: whether write ?2 of tenant ?1 exists, whether one
-- with key digest ?3 is in the queue or held, and the number of the newest write.
SELECT m.version, m.compatible_from,
	EXISTS (SELECT 1 FROM ledger_writes AS w WHERE w.id = ?2 AND w.tenant = ?1),
	EXISTS (SELECT 1 FROM ledger_writes AS q WHERE q.key_digest = ?3 AND q.place IS NOT NULL)
		OR EXISTS (SELECT 1 FROM ledger_writes AS h
			WHERE h.key_digest = ?3 AND h.place IS NULL AND (h.state <> 'settled' OR h.due IS NOT NULL) AND h.state = 'held'),
	coalesce((SELECT max(l.n) FROM ledger_writes AS l), 0)
FROM ledger_meta AS m

-- name: newer_of_record
-- Whether a write with one key digest in one lot is newer than a number.
SELECT 1 FROM ledger_writes AS s WHERE s.n / 256 = ?1 AND s.key_digest = ?2 AND s.tenant = ?3 AND s.n > ?4 LIMIT 1

-- name: extent
-- The first and the last number of a write.
SELECT (SELECT min(f.n) FROM ledger_writes AS f), (SELECT max(l.n) FROM ledger_writes AS l)

-- name: operation
-- Writes of one business operation that may block another one of workflow ?5: open
-- ones, then those that were settled from a time on, the last first. In the index all
-- open writes are equal, and only those are sorted.
SELECT {row}
FROM ledger_writes AS w
WHERE w.tenant = ?1 AND w.tool = ?2 AND w.idempotency_key = ?3 AND w.idempotency_key <> '' AND w.blocks = 1
	AND iif(w.state = 'settled', w.settled_at, 9223372036854775807) >= ?4 AND w.step_of IS NOT ?5
ORDER BY iif(w.state = 'settled', w.settled_at, 9223372036854775807) DESC, w.created DESC, w.n DESC

-- name: insert
INSERT INTO ledger_writes (id, tenant, tool, structural_key, idempotency_key, created, intent, key_digest, step_of,
	state, due, lease_until, fence, seq, body, before, evidence, mismatches, child_intent,
	destination, place, queued_behind, settled_at, tombstone, blocks, waits)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, CAST(?7 AS TEXT), ?8, ?9, ?10, ?11, ?12, ?13, ?14, CAST(?15 AS TEXT), CAST(?16 AS TEXT), CAST(?17 AS TEXT), CAST(?18 AS TEXT), CAST(?19 AS TEXT),
	?20, ?21, ?22, ?23, ?24, ?25, ?26)

-- name: update
UPDATE ledger_writes
SET state = ?2, due = ?3, lease_until = ?4, fence = ?5, seq = ?6, body = CAST(?7 AS TEXT),
	before = CAST(?8 AS TEXT), evidence = CAST(?9 AS TEXT), mismatches = CAST(?10 AS TEXT), child_intent = CAST(?11 AS TEXT),
	destination = ?12, place = ?13, queued_behind = ?14, settled_at = ?15, tombstone = ?16, blocks = ?17, waits = ?18, damaged = NULL
WHERE n = ?1

-- name: insert_event
INSERT INTO ledger_events (write, seq, body, evidence, mismatches)
VALUES (?1, ?2, CAST(?3 AS TEXT), CAST(?4 AS TEXT), CAST(?5 AS TEXT))

-- name: mark_damaged
UPDATE ledger_writes SET damaged = ?2 WHERE n = ?1

-- name: tenants
SELECT w.tenant FROM ledger_writes AS w UNION SELECT p.tenant FROM ledger_documents AS p ORDER BY 1

-- name: lifetimes
SELECT {row}
FROM ledger_writes AS w
WHERE w.id > ?1
ORDER BY w.id
LIMIT ?2
