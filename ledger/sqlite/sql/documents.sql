-- name: document
SELECT {document}
FROM ledger_documents AS p
WHERE p.tenant = ?1 AND p.kind = ?2 AND p.id = ?3

-- name: numbered_document
SELECT {document}
FROM ledger_documents AS p
WHERE p.n = ?1

-- name: insert_document
INSERT INTO ledger_documents (state, due, done, version, updated, body, tenant, kind, id, collection, subject, trace, created)
VALUES (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)

-- name: update_document
UPDATE ledger_documents SET state = ?2, due = ?3, done = ?4, version = ?5, updated = ?6, body = ?7 WHERE n = ?1

-- name: documents_of_kind
-- The numbers of the documents of one kind, newest first.
SELECT p.n
FROM ledger_documents AS p
WHERE p.tenant = ?1 AND p.kind = ?2
ORDER BY p.n DESC
LIMIT ?7 OFFSET ?8

-- name: documents_in_state
-- The numbers of the documents of one kind in one state, newest first.
SELECT p.n
FROM ledger_documents AS p
WHERE p.tenant = ?1 AND p.kind = ?2 AND p.state = ?3
ORDER BY p.n DESC
LIMIT ?7 OFFSET ?8

-- name: documents_in_collection
-- The numbers of the documents of one kind in one collection, oldest first.
SELECT p.n
FROM ledger_documents AS p
WHERE p.tenant = ?1 AND p.kind = ?2 AND p.collection = ?3 AND p.collection <> ''
	AND (?4 = '' OR p.subject = ?4) AND (?5 = '' OR p.trace = ?5) AND (?6 = '[]' OR p.state IN (SELECT s.value FROM json_each(?6) AS s))
ORDER BY p.n
LIMIT ?7 OFFSET ?8

-- name: documents_of_subject
-- The numbers of the documents of one kind with one subject, newest first.
SELECT p.n
FROM ledger_documents AS p
WHERE p.tenant = ?1 AND p.kind = ?2 AND p.subject = ?3 AND p.subject <> ''
	AND (?6 = '[]' OR p.state IN (SELECT s.value FROM json_each(?6) AS s))
ORDER BY p.n DESC
LIMIT ?7 OFFSET ?8

-- name: documents_of_trace
-- The numbers of the documents of one kind with one trace, newest first.
SELECT p.n
FROM ledger_documents AS p
WHERE p.tenant = ?1 AND p.kind = ?2 AND p.trace = ?3 AND p.trace <> ''
	AND (?4 = '' OR p.subject = ?4) AND (?6 = '[]' OR p.state IN (SELECT s.value FROM json_each(?6) AS s))
ORDER BY p.n DESC
LIMIT ?7 OFFSET ?8

-- name: due_documents
-- Due documents of a kind, oldest due first.
SELECT {document}
FROM ledger_documents AS p
WHERE p.kind = ?1 AND p.due <= ?2
ORDER BY p.due, p.n
LIMIT ?3

-- name: done_documents
-- Documents that are done and have no due time, oldest change first, after a given one,
-- without their bodies.
SELECT p.n, p.tenant, p.id, p.collection, p.updated
FROM ledger_documents AS p
WHERE p.done AND p.due IS NULL AND p.updated BETWEEN ?1 AND ?3 AND (p.updated > ?1 OR p.n > ?2)
ORDER BY p.updated, p.n
LIMIT ?4

-- name: document_inventory
SELECT {document}
FROM ledger_documents AS p
WHERE (p.tenant, p.kind, p.id) > (?3, ?4, ?5) AND p.kind <> ?1
ORDER BY p.tenant, p.kind, p.id
LIMIT ?2

-- name: collection_in_use
-- Whether a collection has a document that is due, or was changed after a time.
SELECT 1
FROM ledger_documents AS p
WHERE p.tenant = ?1 AND p.collection = ?2 AND p.collection <> '' AND (p.due IS NOT NULL OR p.updated > ?3)
LIMIT 1

-- name: collection_members
-- The documents of a collection except its cover, without their bodies.
SELECT p.kind, p.id, p.due FROM ledger_documents AS p WHERE p.tenant = ?1 AND p.collection = ?2 AND p.collection <> '' AND p.n <> ?3

-- name: delete_members
-- Deletes some documents of a collection, but not its cover.
DELETE FROM ledger_documents WHERE n IN (
	SELECT p.n FROM ledger_documents AS p WHERE p.tenant = ?1 AND p.collection = ?2 AND p.collection <> '' AND p.n <> ?3 LIMIT ?4)
RETURNING tenant, kind, id

-- name: delete_document
DELETE FROM ledger_documents WHERE n = ?1 RETURNING tenant, kind, id

-- name: holds
-- The documents of active legal holds, of all tenants.
SELECT p.tenant, p.id, p.due, p.body FROM ledger_documents AS p WHERE p.kind = 'hold' AND p.due IS NOT NULL
