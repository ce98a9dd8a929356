DELETE FROM @ledger_writes WHERE n = ANY ($1::bigint[])
