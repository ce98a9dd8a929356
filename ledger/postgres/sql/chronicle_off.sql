UPDATE @ledger_meta SET chronicle = FALSE
