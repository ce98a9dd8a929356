-- name: meta
SELECT version, compatible_from, newest, sealing, kept_since, ticket FROM ledger_meta

-- name: tick
UPDATE ledger_meta SET newest = ?1, ticket = coalesce(?2, ticket)

-- name: digest_key
SELECT digest_key FROM main.ledger_meta

-- name: foreign
SELECT s.type || ' ' || s.name || ' on ' || s.tbl_name FROM sqlite_schema AS s
WHERE s.type = 'trigger' AND s.tbl_name LIKE 'ledger\_%' ESCAPE '\'
ORDER BY 1
