DELETE FROM @ledger_unsealed WHERE ticket = ANY ($1::bigint[])
