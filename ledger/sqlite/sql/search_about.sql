-- The numbers of writes of one tenant with one key digest in one lot, newest
-- first, created before number ?3. (The words for the oldest first are put in
-- their place.)
SELECT s.n
FROM ledger_writes AS s
WHERE s.n / 256 = ?5 AND s.key_digest = ?2 AND s.tenant = ?1 AND s.n < ?3
ORDER BY s.n DESC
LIMIT ?4
