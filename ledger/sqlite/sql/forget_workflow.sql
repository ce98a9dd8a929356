DELETE FROM ledger_workflows WHERE tenant = ?1 AND workflow = ?2 AND n = ?3
