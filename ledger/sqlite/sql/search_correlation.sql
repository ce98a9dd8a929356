-- The numbers of writes of one tenant with one correlation id, newest first, created before
-- number ?3. (The words for the oldest first are put in their place.)
SELECT s.n
FROM ledger_workflows AS s
WHERE s.tenant = ?1 AND s.correlation_id = ?2 AND s.correlation_id <> '' AND s.n < ?3
ORDER BY s.n DESC
LIMIT ?4
