DELETE FROM ledger_writes WHERE n = ?1
