INSERT INTO ledger_papers (state, due, done, version, updated, body, tenant, kind, id, binder, subject, trace, created)
VALUES (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
