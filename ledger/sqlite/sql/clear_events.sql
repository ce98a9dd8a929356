DELETE FROM ledger_events WHERE write = ?1
