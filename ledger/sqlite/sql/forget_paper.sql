DELETE FROM ledger_papers WHERE n = ?1 RETURNING tenant, kind, id
