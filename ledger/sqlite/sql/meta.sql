SELECT version, compatible_from, newest, chronicle, ticket, found_writes, found_papers FROM ledger_meta
