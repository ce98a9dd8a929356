DELETE FROM ledger_papers WHERE n = ?1
