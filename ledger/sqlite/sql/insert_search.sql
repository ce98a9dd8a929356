INSERT INTO ledger_search (n, tenant, workflow, correlation_id, idempotency_key, key_digest)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
