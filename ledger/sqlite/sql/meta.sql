SELECT version, compatible_from, newest FROM ledger_meta
