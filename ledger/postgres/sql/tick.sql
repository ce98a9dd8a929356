-- The newest time on record, unless somebody else is just writing it.
UPDATE @ledger_meta SET newest = $1
WHERE one = (SELECT m.one FROM @ledger_meta AS m WHERE m.newest < $2 FOR UPDATE SKIP LOCKED)
