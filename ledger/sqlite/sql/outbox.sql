-- name: lock_outbox
-- Deletes nothing, and waits for the write lock.
DELETE FROM main.ledger_outbox WHERE FALSE

-- name: enqueue
-- Runs on the connection and in the transaction of the caller. The main database must
-- be the ledger: a commit over several files is not one step.
INSERT INTO main.ledger_outbox (id, tenant, key_digest, intent, enqueued)
SELECT ?1, ?2, ?3, ?4, ?5
WHERE NOT EXISTS (SELECT 1 FROM main.ledger_notes WHERE name = 'outbox/full' AND length(value) > 0)

-- name: outbox_size
SELECT count(*), min(o.enqueued) FROM ledger_outbox AS o WHERE o.refused IS NULL

-- name: entries
-- Entries of the outbox, oldest first, from a number on.
SELECT o.n, o.id, o.tenant, o.key_digest, o.intent
FROM ledger_outbox AS o
WHERE o.refused IS NULL AND o.n > ?2
ORDER BY o.n
LIMIT ?1

-- name: entries_of
-- Entries of the outbox about one record, oldest first.
SELECT o.n, o.id, o.tenant, o.key_digest, o.intent
FROM ledger_outbox AS o
WHERE o.key_digest = ?1 AND o.refused IS NULL
ORDER BY o.n
LIMIT ?2

-- name: entry
-- The entry of one write; an open one before a refused one.
SELECT o.key_digest, o.refused, o.tenant
FROM ledger_outbox AS o
WHERE o.id = ?1
ORDER BY o.refused IS NOT NULL, o.n DESC
LIMIT 1

-- name: delete_entry
DELETE FROM ledger_outbox WHERE n = ?1

-- name: refuse_entry
-- The time is from the clock of the caller. If that clock was ahead, the entry must not
-- be kept longer than others.
UPDATE ledger_outbox SET refused = ?2, enqueued = min(enqueued, ?3) WHERE n = ?1

-- name: refused_entries
SELECT o.tenant, o.id, o.refused, o.enqueued
FROM ledger_outbox AS o
WHERE o.refused IS NOT NULL
ORDER BY o.n
LIMIT ?1

-- name: delete_refused
DELETE FROM ledger_outbox WHERE n IN (
	SELECT o.n FROM ledger_outbox AS o WHERE o.refused IS NOT NULL AND o.enqueued <= ?1
		AND o.tenant NOT IN (SELECT value FROM json_each(?3))
	ORDER BY o.n LIMIT ?2)

-- name: entries_of_records
-- Open entries of the outbox about some records of a tenant.
SELECT o.id FROM ledger_outbox AS o
WHERE o.key_digest IN (SELECT value FROM json_each(?2)) AND o.refused IS NULL AND o.tenant = ?1
ORDER BY o.id

-- name: delete_refused_of_records
-- Deletes refused entries of the outbox about some records of a tenant.
DELETE FROM ledger_outbox
WHERE refused IS NOT NULL AND tenant = ?1 AND key_digest IN (SELECT value FROM json_each(?2))
