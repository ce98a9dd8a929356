-- The numbers of writes of one tenant with one idempotency key that block no other, newest first, created before
-- number ?3. (The words for the oldest first are put in their place.)
SELECT s.n
FROM ledger_writes AS s
WHERE s.tenant = ?1 AND s.idempotency_key = ?2 AND s.idempotency_key <> '' AND s.blocks = 0 AND s.n < ?3
ORDER BY s.n DESC
LIMIT ?4
