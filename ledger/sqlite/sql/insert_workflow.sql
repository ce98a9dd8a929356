INSERT INTO ledger_workflows (tenant, workflow, n, correlation_id) VALUES (?1, ?2, ?3, ?4)
