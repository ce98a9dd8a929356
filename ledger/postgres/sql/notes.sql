-- name: notes
WITH {guard}
SELECT {state}, coalesce(o.name, ''), coalesce(o.version, 0), o.value, coalesce(o.at, 0)
FROM g LEFT JOIN @ledger_notes AS o
	ON o.name >= $1::text AND substr(o.name, 1, length($1::text)) = $1::text AND length(o.value) > 0
ORDER BY o.name

-- name: conclude
-- Records that a transaction was not applied, unless it has recorded that it was
-- (record_transaction). It waits for a transaction that may still be. Its note is empty,
-- and so is never listed.
INSERT INTO @ledger_notes (name, version, value, at) VALUES ($1::text, -1, '', {clock}) ON CONFLICT DO NOTHING

-- name: concluded
SELECT o.version >= 0 FROM @ledger_notes AS o WHERE o.name = $1::text

-- name: record_transaction
-- The first statement of a transaction, without parameters, which records that it was
-- applied.
INSERT INTO @ledger_notes (name, version, value, at) VALUES ('{name}', 0, '', {clock})

-- name: forget_transactions
DELETE FROM @ledger_notes WHERE name > '!' AND name < '"' AND at < $1::bigint

-- name: insert_note
-- Creates a note that does not exist or was removed. The row of a removed note remains,
-- with its version, so that no later note of the same name is mistaken for it.
WITH {guard},
w AS (INSERT INTO @ledger_notes AS o (name, version, value, at)
	SELECT $2::text, 1, $3::bytea, g.now FROM g WHERE g.compatible_from <= $1 AND NOT g.standby
	ON CONFLICT (name) DO UPDATE SET version = o.version + 1, value = excluded.value, at = greatest(o.at, excluded.at)
	WHERE length(o.value) = 0
	RETURNING o.version, o.at)
SELECT {state}, coalesce(w.version, 0), coalesce(w.at, 0) FROM g LEFT JOIN w ON TRUE

-- name: update_note
-- Changes a note that has the version that its writer has read.
WITH {guard},
w AS (UPDATE @ledger_notes AS o SET version = o.version + 1, value = $3::bytea, at = greatest(o.at, g.now)
	FROM g WHERE o.name = $2::text AND o.version = $4::bigint AND length(o.value) > 0
		AND g.compatible_from <= $1 AND NOT g.standby
	RETURNING o.version, o.at)
SELECT {state}, coalesce(w.version, 0), coalesce(w.at, 0) FROM g LEFT JOIN w ON TRUE
