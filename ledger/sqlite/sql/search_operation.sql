-- The numbers of writes of one tenant with one idempotency key that may block others, newest first, created before
-- number ?3. There is one for each window at most, and those alone are sorted. (The words for the oldest first are put in their place.)
SELECT s.n
FROM ledger_writes AS s
WHERE s.tenant = ?1 AND s.idempotency_key = ?2 AND s.idempotency_key <> '' AND s.blocks IS NOT 0 AND s.n < ?3
ORDER BY s.n DESC
LIMIT ?4
