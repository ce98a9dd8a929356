SELECT o.version, length(o.value) FROM ledger_notes AS o WHERE o.name = ?1
