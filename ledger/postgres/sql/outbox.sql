SELECT count(*), coalesce(min(o.enqueued), 0) FROM @ledger_outbox AS o WHERE o.refused IS NULL
