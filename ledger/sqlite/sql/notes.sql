-- name: note
SELECT o.version, length(o.value) FROM ledger_notes AS o WHERE o.name = ?1

-- name: notes
SELECT o.name, o.version, o.value, o.at
FROM ledger_notes AS o
WHERE o.name >= ?1 AND substr(o.name, 1, length(?1)) = ?1 AND length(o.value) > 0
ORDER BY o.name

-- name: set_note
INSERT INTO ledger_notes (name, version, value, at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET version = ?2, value = ?3, at = ?4
