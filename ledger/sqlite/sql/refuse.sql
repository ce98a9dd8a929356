-- The time is the caller's; a clock that was ahead must not keep the entry
-- longer than others.
UPDATE ledger_outbox SET refused = ?2, enqueued = min(enqueued, ?3) WHERE n = ?1
