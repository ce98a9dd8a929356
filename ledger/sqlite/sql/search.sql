-- name: insert_search
INSERT INTO ledger_search (tenant, workflow, n, correlation_id) VALUES (?1, ?2, ?3, ?4)

-- name: search_workflow
-- The numbers of the writes of one tenant with one workflow, newest first, created
-- before number ?3. For each search there is one with the oldest first; see
-- newStatements.
SELECT s.n
FROM ledger_search AS s
WHERE s.tenant = ?1 AND s.workflow = ?2 AND s.n < ?3
ORDER BY s.n DESC
LIMIT ?4

-- name: search_correlation
-- The numbers of the writes of one tenant with one correlation id, newest first,
-- created before number ?3.
SELECT s.n
FROM ledger_search AS s
WHERE s.tenant = ?1 AND s.correlation_id = ?2 AND s.correlation_id <> '' AND s.n < ?3
ORDER BY s.n DESC
LIMIT ?4

-- name: search_operation
-- The numbers of the writes of one tenant with one idempotency key that may block
-- others, newest first, created before number ?3. There is at most one for each window,
-- and only those are sorted.
SELECT s.n
FROM ledger_writes AS s
WHERE s.tenant = ?1 AND s.idempotency_key = ?2 AND s.idempotency_key <> '' AND s.blocks = 1 AND s.n < ?3
ORDER BY s.n DESC
LIMIT ?4

-- name: search_not_blocking
-- The numbers of the writes of one tenant with one idempotency key that block no other,
-- newest first, created before number ?3.
SELECT s.n
FROM ledger_writes AS s
WHERE s.tenant = ?1 AND s.idempotency_key = ?2 AND s.idempotency_key <> '' AND s.blocks = 0 AND s.n < ?3
ORDER BY s.n DESC
LIMIT ?4

-- name: search_key_digest
-- The numbers of the writes of one tenant with one key digest in one lot, newest first,
-- created before number ?3.
SELECT s.n
FROM ledger_writes AS s
WHERE s.n / 256 = ?5 AND s.key_digest = ?2 AND s.tenant = ?1 AND s.n < ?3
ORDER BY s.n DESC
LIMIT ?4

-- name: insert_term
INSERT OR IGNORE INTO ledger_terms (lot, tenant, term, n) VALUES (?1, ?2, ?3, ?4)

-- name: search_terms
-- The numbers of the writes of one tenant with a term in a range in one lot, newest
-- first, created before number ?3. A write may have several.
SELECT DISTINCT s.n
FROM ledger_terms AS s
WHERE s.lot = ?5 AND s.tenant = ?1 AND s.term >= ?2 AND s.term < ?6 AND s.n < ?3
ORDER BY s.n DESC
LIMIT ?4

-- name: search_id
-- The numbers of the writes of one tenant with an id in a range, newest first, created
-- before number ?3.
SELECT s.n
FROM ledger_writes AS s
WHERE s.id >= ?2 AND s.id < ?6 AND +s.tenant = ?1 AND +s.n < ?3
ORDER BY s.n DESC
LIMIT ?4

-- name: delete_terms
-- Deletes the terms of some writes of one tenant in one lot.
DELETE FROM ledger_terms WHERE lot = ?1 AND tenant = ?2 AND n IN (SELECT value FROM json_each(?3))

-- name: search_state
-- The numbers of the writes of one tenant in one state, newest first, created before
-- number ?3.
SELECT s.n
FROM ledger_writes AS s
WHERE s.tenant = ?1 AND s.state = ?2 AND s.n < ?3
ORDER BY s.n DESC
LIMIT ?4

-- name: search_waits
-- The numbers of the writes of one tenant in one group of waiting writes, newest first,
-- created before number ?3.
SELECT s.n
FROM ledger_writes AS s
WHERE s.tenant = ?1 AND s.waits = ?2 AND s.waits IS NOT NULL AND s.n < ?3
ORDER BY s.n DESC
LIMIT ?4

-- name: waiting
-- The writes of one tenant that wait for a reviewer, counted, and of each group those
-- created before three times.
SELECT w.waits, count(*), count(*) FILTER (WHERE w.created < ?2), count(*) FILTER (WHERE w.created < ?3), count(*) FILTER (WHERE w.created < ?4)
FROM ledger_writes AS w
WHERE w.tenant = ?1 AND w.waits IS NOT NULL
GROUP BY w.waits
ORDER BY w.waits
LIMIT ?5

-- name: found
SELECT {found}
FROM ledger_writes AS w
WHERE w.n = ?1

-- name: delete_search
DELETE FROM ledger_search WHERE tenant = ?1 AND workflow = ?2 AND n = ?3

-- name: erase_search
UPDATE ledger_search SET workflow = '', correlation_id = '' WHERE tenant = ?1 AND workflow = ?2 AND n = ?3
