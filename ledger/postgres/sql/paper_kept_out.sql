-- There is no such paper, and until this transaction ends nobody makes it: who
-- tries to waits for what is deleted again at once.
INSERT INTO @ledger_papers (tenant, kind, id, binder, subject, trace, state, done, body, version, created, updated, came)
VALUES ($1::text, $2::text, $3::text, '', '', '', '', FALSE, '', 0, 0, 0, 0)
