SELECT count(*), min(o.enqueued) FROM ledger_outbox AS o WHERE o.refused IS NULL
