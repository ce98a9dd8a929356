INSERT INTO ledger_writes (id, tenant, tool, structural_key, idempotency_key, created, intent, key_digest, step_of,
	state, due, lease_until, fence, seq, body, before, evidence, mismatches, child_intent,
	destination, place, behind, settled_at, tombstone, blocks)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)
