-- Some writes, for this transaction alone, in one order.
SELECT w.id FROM @ledger_writes AS w WHERE w.id = ANY ($1::text[]) ORDER BY w.id FOR UPDATE
