INSERT INTO ledger_changes (at, tenant, write, seq, kind, settlement, destination, sends, reads, saved)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
