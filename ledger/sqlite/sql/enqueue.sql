-- Run by the caller's own connection, in the caller's transaction. The main
-- database must be the ledger's: over several files a commit is not one step.
INSERT INTO main.ledger_outbox (id, tenant, key_digest, intent, enqueued)
SELECT ?1, ?2, ?3, ?4, ?5
WHERE NOT EXISTS (SELECT 1 FROM main.ledger_notes WHERE name = 'outbox/full' AND length(value) > 0)
