-- Is there a line that nobody is at the head of?
SELECT NOT EXISTS (SELECT 1 FROM @ledger_writes WHERE key_digest = $1 AND behind IS NULL)
