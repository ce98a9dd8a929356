UPDATE @ledger_meta SET chronicle = FALSE, found = '~', found_tenant = NULL, found_kind = NULL, found_paper = NULL
