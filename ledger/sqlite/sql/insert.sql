INSERT INTO ledger_writes (id, tenant, tool, structural_key, idempotency_key, created, intent,
	state, due, lease_until, fence, seq, body, before, evidence, mismatches, child_intent)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
