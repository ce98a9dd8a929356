-- The id of the last write in a line before a place.
SELECT w.id
FROM ledger_writes AS w
WHERE w.key_digest = ?1 AND w.place < ?2
ORDER BY w.place DESC
LIMIT 1
