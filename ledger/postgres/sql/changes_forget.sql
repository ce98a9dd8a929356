DELETE FROM @ledger_changes WHERE n <= $1::bigint
