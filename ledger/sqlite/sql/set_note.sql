INSERT INTO ledger_notes (name, version, value, at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE SET version = ?2, value = ?3, at = ?4
