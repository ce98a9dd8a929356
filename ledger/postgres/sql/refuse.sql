UPDATE @ledger_outbox SET refused = $2::text WHERE n = $1::bigint AND refused IS NULL
