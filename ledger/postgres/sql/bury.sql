UPDATE @ledger_writes AS w SET tombstone = TRUE, body = i.body, fence = i.fence, owner = '', lease_until = 0, lease_for = 0,
	intent = NULL, before = NULL, evidence = NULL, mismatches = NULL, child_intent = NULL
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS i (id, body, fence)
WHERE w.id = i.id
