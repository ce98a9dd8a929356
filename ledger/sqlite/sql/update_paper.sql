UPDATE ledger_papers SET state = ?2, due = ?3, done = ?4, version = ?5, updated = ?6, body = ?7 WHERE n = ?1
