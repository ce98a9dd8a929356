DELETE FROM ledger_outbox WHERE n = ?1
