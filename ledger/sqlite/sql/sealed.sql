DELETE FROM ledger_unsealed WHERE ticket = ?1
