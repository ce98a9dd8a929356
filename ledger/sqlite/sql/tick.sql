UPDATE ledger_meta SET newest = ?1
