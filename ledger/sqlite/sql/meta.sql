SELECT version, compatible_from, newest, chronicle, ticket FROM ledger_meta
