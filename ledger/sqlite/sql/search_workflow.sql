-- The numbers of writes of one tenant with one workflow, newest first, created before
-- number ?3. (The words for the oldest first are put in their place.)
SELECT s.n
FROM ledger_workflows AS s
WHERE s.tenant = ?1 AND s.workflow = ?2 AND s.n < ?3
ORDER BY s.n DESC
LIMIT ?4
