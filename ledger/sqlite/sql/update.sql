UPDATE ledger_writes
SET state = ?2, due = ?3, lease_until = ?4, fence = ?5, seq = ?6, body = ?7, before = ?8, evidence = ?9, mismatches = ?10, child_intent = ?11,
	destination = ?12, place = ?13, behind = ?14, settled_at = ?15, tombstone = ?16, blocks = ?17, damaged = NULL
WHERE n = ?1
