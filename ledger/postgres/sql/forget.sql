DELETE FROM @ledger_writes WHERE id = ANY ($1::text[])
