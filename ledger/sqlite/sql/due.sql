-- What one party may claim now, oldest due first.
SELECT w.n, w.due
FROM ledger_writes AS w
WHERE w.damaged IS NULL AND w.destination = ?1 AND w.tenant = ?2 AND w.state = ?3 AND w.due <= ?4 AND w.lease_until <= ?4
ORDER BY w.due
LIMIT ?5
