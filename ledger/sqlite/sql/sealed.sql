DELETE FROM ledger_unsealed WHERE ticket BETWEEN ?2 AND ?1
