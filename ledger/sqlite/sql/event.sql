INSERT INTO ledger_events (write, seq, body, evidence, mismatches)
VALUES (?1, ?2, ?3, ?4, ?5)
