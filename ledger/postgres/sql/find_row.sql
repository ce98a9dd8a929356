-- One write, in a transaction that has looked at the database.
SELECT {row} FROM @ledger_writes AS w WHERE w.id = $1
