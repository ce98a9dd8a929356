UPDATE ledger_writes SET intent = '' WHERE n = ?1
