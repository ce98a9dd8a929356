DELETE FROM @ledger_unsealed
