DELETE FROM @ledger_events WHERE write = ANY ($1::bigint[])
