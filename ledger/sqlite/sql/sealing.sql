-- name: insert_unsealed
INSERT INTO ledger_unsealed (ticket, at, write, first, last, mark) VALUES (?1, ?2, ?3, ?4, ?5, ?6)

-- name: unsealed_tickets
SELECT u.ticket, u.write, u.first, u.last, u.at
FROM ledger_unsealed AS u
WHERE u.ticket > ?1 AND (SELECT m.sealing FROM ledger_meta AS m) = 1
ORDER BY u.ticket
LIMIT ?2

-- name: unsealed
-- One row for each event of a run, and one for a run without events. The numbers of
-- events are compared with columns and not with parameters, so that SQLite need not
-- plan anew for each run.
SELECT u.ticket, u.write, u.first, u.last, u.mark, w.id, w.tenant, iif(u.first = 1, w.intent, NULL), e.body, e.evidence, e.mismatches
FROM ledger_unsealed AS u
LEFT JOIN ledger_writes AS w ON w.n = u.write
LEFT JOIN ledger_events AS e ON e.write = w.n AND e.seq >= u.first AND e.seq <= u.last
WHERE u.ticket BETWEEN ?1 AND ?2
ORDER BY u.ticket, e.seq

-- name: run_events
SELECT e.body, e.evidence, e.mismatches
FROM ledger_events AS e
WHERE e.write = ?1 AND e.seq BETWEEN ?2 AND ?3
ORDER BY e.seq

-- name: unsealed_writes
SELECT u.write FROM ledger_unsealed AS u WHERE u.write IS NOT NULL LIMIT ?1

-- name: delete_unsealed
DELETE FROM ledger_unsealed WHERE ticket BETWEEN ?2 AND ?1

-- name: delete_old_unsealed
-- Of the oldest rows those up to a time.
DELETE FROM ledger_unsealed WHERE at <= ?1 AND ticket IN (SELECT u.ticket FROM ledger_unsealed AS u ORDER BY u.ticket LIMIT ?2)
RETURNING at

-- name: delete_pruned_unsealed
-- The rows whose events were pruned, which has a mark.
DELETE FROM ledger_unsealed AS u WHERE u.write IS NOT NULL
	AND NOT EXISTS (SELECT 1 FROM ledger_events AS e WHERE e.write = u.write AND e.seq BETWEEN u.first AND u.last)

-- name: delete_marks
-- The marks of a document, whose name is erased where there is no sealer.
DELETE FROM ledger_unsealed WHERE mark ->> '$.tenant' = ?1 AND mark ->> '$.paper_kind' = ?2 AND mark ->> '$.paper_id' = ?3
