-- The numbers of writes of one tenant in one state, newest first, created before
-- number ?3. (The words for the oldest first are put in their place.)
SELECT s.n
FROM ledger_writes AS s
WHERE s.tenant = ?1 AND s.state = ?2 AND s.n < ?3
ORDER BY s.n DESC
LIMIT ?4
