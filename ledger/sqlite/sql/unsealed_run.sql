INSERT INTO ledger_unsealed (ticket, write, first, last, mark) VALUES (?1, ?2, ?3, ?4, ?5)
