DELETE FROM @ledger_outbox WHERE n = ANY ($1::bigint[])
