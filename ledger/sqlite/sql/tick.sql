UPDATE ledger_meta SET newest = ?1, ticket = coalesce(?2, ticket)
