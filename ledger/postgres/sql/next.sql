-- The write that waits behind one, for this transaction alone.
SELECT {row} FROM @ledger_writes AS w WHERE w.behind = $1 FOR UPDATE
