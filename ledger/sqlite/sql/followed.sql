SELECT 1 FROM ledger_writes AS w WHERE w.behind = ?1
