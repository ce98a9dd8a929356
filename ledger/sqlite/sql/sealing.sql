-- name: insert_unsealed
INSERT INTO ledger_unsealed (ticket, write, first, last, mark) VALUES (?1, ?2, ?3, ?4, ?5)

-- name: unsealed
-- One row for each event of a run, and one for a run without events. The numbers of
-- events are compared with columns and not with parameters, so that SQLite need not
-- plan anew for each run.
SELECT u.ticket, u.write, u.first, u.last, u.mark, w.id, w.tenant, w.tombstone, iif(u.first < 2, w.intent, NULL), e.body, e.evidence, e.mismatches
FROM ledger_unsealed AS u
LEFT JOIN ledger_writes AS w ON w.n = u.write
LEFT JOIN ledger_events AS e ON e.write = w.n AND e.seq >= u.first AND e.seq <= u.last AND (u.first > 0 OR NOT w.tombstone)
WHERE u.ticket > ?1
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

-- name: next_writes
-- The number of the last write of the next portion, and how many writes it has.
SELECT max(x.n), count(*) FROM (SELECT w.n FROM ledger_writes AS w WHERE w.n > ?1 ORDER BY w.n LIMIT ?2) AS x

-- name: next_documents
-- The number of the last document of the next portion, and how many documents it has.
SELECT max(x.n), count(*) FROM (SELECT p.n FROM ledger_documents AS p WHERE p.n > ?1 ORDER BY p.n LIMIT ?2) AS x

-- name: backfill_writes
INSERT INTO ledger_unsealed (ticket, write, first, last)
SELECT ?1 + row_number() OVER (ORDER BY w.n), w.n, 0, w.seq FROM ledger_writes AS w WHERE w.n > ?2 AND w.n <= ?3

-- name: backfill_documents
INSERT INTO ledger_unsealed (ticket, first, last, mark)
SELECT ?1 + row_number() OVER (ORDER BY p.n), 0, 0, json_object('kind', 'found', 'tenant', p.tenant, 'paper_kind', p.kind, 'paper_id', p.id)
FROM ledger_documents AS p WHERE p.n > ?2 AND p.n <= ?3 AND p.kind <> 'audit'
