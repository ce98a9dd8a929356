UPDATE ledger_writes SET damaged = ?2 WHERE n = ?1
