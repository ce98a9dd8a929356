SELECT version, newest FROM ledger_meta
