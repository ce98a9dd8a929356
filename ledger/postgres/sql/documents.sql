-- name: document
-- One document, with the state of the database.
WITH {guard}
SELECT {state}, {document} FROM g LEFT JOIN @ledger_documents AS p ON p.tenant = $1::text AND p.kind = $2::text AND p.id = $3::text

-- name: documents
-- A page of documents of one kind and tenant, and how many there are in all. Bodies
-- beyond the page are not read.
WITH {guard},
f AS MATERIALIZED (SELECT x.tenant, x.kind, x.id, x.position, x.n FROM @ledger_documents AS x
	WHERE x.tenant = $1::text AND x.kind = $2::text{narrowed})
SELECT {state}, (SELECT count(*) FROM f), {document}
FROM g LEFT JOIN (SELECT * FROM f ORDER BY f.position {direction}, f.n {direction} LIMIT $3::bigint OFFSET $4::bigint) AS f ON TRUE
LEFT JOIN LATERAL (
	SELECT x.* FROM @ledger_documents AS x WHERE x.tenant = f.tenant AND x.kind = f.kind AND x.id = f.id OFFSET 0) AS p ON TRUE
ORDER BY f.position {direction}, f.n {direction}

-- name: due_documents
-- Due documents of a kind, oldest due first.
WITH {guard}
SELECT {state}, {document} FROM g LEFT JOIN LATERAL (
	SELECT x.* FROM @ledger_documents AS x WHERE x.kind = $1::text AND x.due <= g.now AND {owned:x.tenant}
	ORDER BY x.due, x.n LIMIT $2::bigint) AS p ON TRUE
ORDER BY p.due, p.n

-- name: document_inventory
WITH {guard}
SELECT {state}, {document} FROM g LEFT JOIN LATERAL (
	SELECT x.* FROM @ledger_documents AS x WHERE (x.tenant, x.kind, x.id) > ($1::text, $2::text, $3::text) AND x.kind <> $4::text
	ORDER BY x.tenant, x.kind, x.id LIMIT $5::bigint) AS p ON TRUE
ORDER BY p.tenant, p.kind, p.id

-- name: commit
-- Writes documents, if each has the version that is named. The documents of a batch are
-- locked in one order; those that must only stay unchanged are locked for sharing.
WITH {guard}{documents}{written}
SELECT {state}, ARRAY[]::text[], ARRAY[]::bigint[]{answer} FROM g

-- name: batch_documents
p AS MATERIALIZED (SELECT * FROM unnest({parameters}) WITH ORDINALITY
	AS p (writes, tenant, kind, id, collection, subject, trace, state, due, done, body, version, mark, ord)),
{held},
ok AS MATERIALIZED (
	SELECT 1 FROM g
	WHERE g.compatible_from <= $1 AND NOT g.standby AND NOT EXISTS (SELECT 1 FROM h WHERE h.have <> h.version)
		AND {clock} - g.now <= {lag}
		AND NOT EXISTS (SELECT 1 FROM p WHERE p.writes AND NOT CASE WHEN p.version = 0 THEN {owned:p.tenant} ELSE {kept:p.tenant} END))

-- name: held_versions
h AS MATERIALIZED (
	SELECT p.ord, p.version, coalesce(a.version, b.version, 0) AS have
	FROM (SELECT * FROM p ORDER BY p.tenant COLLATE "C", p.kind COLLATE "C", p.id COLLATE "C") AS p
	LEFT JOIN LATERAL (SELECT x.version FROM @ledger_documents AS x
		WHERE p.writes AND x.tenant = p.tenant AND x.kind = p.kind AND x.id = p.id FOR UPDATE) AS a ON TRUE
	LEFT JOIN LATERAL (SELECT x.version FROM @ledger_documents AS x
		WHERE NOT p.writes AND x.tenant = p.tenant AND x.kind = p.kind AND x.id = p.id FOR SHARE) AS b ON TRUE)

-- name: known_versions
h AS (SELECT p.ord, p.version, p.version AS have FROM p)

-- name: write_documents
pi AS (INSERT INTO @ledger_documents (tenant, kind, id, collection, subject, trace, state, due, done, body, version, created, updated, position)
	SELECT p.tenant, p.kind, p.id, p.collection, p.subject, p.trace, p.state, p.due, p.done, p.body, 1, g.now, g.now, g.now + p.ord
	FROM p CROSS JOIN g
	WHERE p.writes AND p.version = 0 AND EXISTS (SELECT 1 FROM {ready})
	ORDER BY p.tenant COLLATE "C", p.kind COLLATE "C", p.id COLLATE "C"),
pm AS (INSERT INTO @ledger_unsealed (at, mark)
	SELECT g.now, p.mark FROM p CROSS JOIN g
	WHERE p.mark <> '' AND EXISTS (SELECT 1 FROM {ready})
	ORDER BY p.ord),
pu AS (UPDATE @ledger_documents AS x SET
		state = p.state, due = p.due, done = p.done, body = p.body, version = x.version + 1, updated = greatest(x.updated, g.now)
	FROM p CROSS JOIN g
	WHERE p.writes AND p.version > 0 AND x.tenant = p.tenant AND x.kind = p.kind AND x.id = p.id
		AND EXISTS (SELECT 1 FROM {ready})
	RETURNING p.ord, x.collection, x.subject, x.trace, x.created, x.updated)

-- name: lock_documents
-- Locks the documents of a batch.
WITH {guard}{documents}
SELECT {state}, ARRAY(SELECT h.have FROM h ORDER BY h.ord) FROM g

-- name: take_name
-- Prevents other transactions from creating a document until this one ends: they wait
-- for the row, which is deleted again at once.
INSERT INTO @ledger_documents (tenant, kind, id, collection, subject, trace, state, done, body, version, created, updated, position)
VALUES ($1::text, $2::text, $3::text, '', '', '', '', FALSE, '', 0, 0, 0, 0)

-- name: free_name
DELETE FROM @ledger_documents WHERE tenant = $1::text AND kind = $2::text AND id = $3::text AND version = 0

-- name: lock_document
-- Locks one document and the documents of the collection that it covers, without their
-- bodies. The document comes first.
SELECT x.kind, x.id, x.collection, x.done, coalesce(x.due, 0) FROM @ledger_documents AS x
WHERE x.tenant = $1::text AND (x.kind = $2::text AND x.id = $3::text
	OR x.collection = $3::text AND x.collection <> ''
		AND EXISTS (SELECT 1 FROM @ledger_documents AS c WHERE c.tenant = $1::text AND c.kind = $2::text AND c.id = $3::text AND c.collection = $3::text))
ORDER BY x.kind = $2::text AND x.id = $3::text DESC, x.kind, x.id
FOR UPDATE

-- name: done_documents
-- Locks documents that are done and have no due time, oldest change first, after a
-- given one.
SELECT x.updated, x.n, x.tenant, x.kind, x.id, x.collection <> '' AND x.collection = x.id
FROM @ledger_documents AS x
WHERE x.done AND x.due IS NULL AND x.updated BETWEEN $1::bigint AND $3::bigint AND (x.updated > $1::bigint OR x.n > $2::bigint)
ORDER BY x.updated, x.n
LIMIT $4::bigint
FOR UPDATE SKIP LOCKED

-- name: collection_members
-- Locks the documents of a collection, its cover last, if none of them is due, was
-- changed after a time, or is locked. It waits for no lock: a transaction that commits
-- a batch may wait for the cover.
WITH l AS MATERIALIZED (
	SELECT x.kind, x.id, x.n, x.due IS NULL AND x.updated <= $4::bigint AS rests FROM @ledger_documents AS x
	WHERE x.tenant = $1::text AND x.collection = $2::text AND x.collection <> '' FOR UPDATE SKIP LOCKED)
SELECT l.kind, l.id FROM l
WHERE (SELECT bool_and(l.rests) AND count(*) = (SELECT count(*) FROM @ledger_documents AS x
	WHERE x.tenant = $1::text AND x.collection = $2::text AND x.collection <> '') FROM l)
ORDER BY l.kind = $3::text AND l.id = $2::text, l.n
LIMIT $5::bigint

-- name: delete_documents
DELETE FROM @ledger_documents AS x USING unnest($1::text[], $2::text[], $3::text[]) AS p (tenant, kind, id)
WHERE x.tenant = p.tenant AND x.kind = p.kind AND x.id = p.id

-- name: holds
-- The documents of active legal holds, of all tenants.
SELECT x.tenant, x.id, x.due, x.body FROM @ledger_documents AS x WHERE x.kind = 'hold' AND x.due IS NOT NULL
