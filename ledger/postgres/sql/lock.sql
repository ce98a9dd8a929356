-- One write, for this transaction alone.
SELECT {row} FROM @ledger_writes AS w WHERE w.id = $1 FOR UPDATE
