SELECT {row} FROM @ledger_writes AS w WHERE w.id = ANY ($1::text[])
