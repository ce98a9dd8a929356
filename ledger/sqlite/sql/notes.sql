SELECT o.name, o.version, o.value, o.at
FROM ledger_notes AS o
WHERE o.name >= ?1 AND substr(o.name, 1, length(?1)) = ?1 AND length(o.value) > 0
ORDER BY o.name
