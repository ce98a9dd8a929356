-- The party after another one, and when the oldest of its work is due.
SELECT w.destination, w.tenant, w.state, w.due
FROM ledger_writes AS w
WHERE w.due IS NOT NULL AND w.damaged IS NULL AND (w.destination, w.tenant, w.state) > (?1, ?2, ?3)
ORDER BY w.destination, w.tenant, w.state, w.due
LIMIT 1
