-- Is there a write of tenant $1 with key digest $2 that is newer than a number?
SELECT EXISTS (SELECT 1 FROM @ledger_search AS s WHERE s.tenant = $1 AND s.key_digest = $2 AND s.key_digest <> '' AND s.n > $3)
