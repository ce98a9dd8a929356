-- Is there a write with one key digest in one lot that is newer than a number?
SELECT 1 FROM ledger_writes AS s WHERE s.n / 256 = ?1 AND s.key_digest = ?2 AND s.tenant = ?3 AND s.n > ?4 LIMIT 1
