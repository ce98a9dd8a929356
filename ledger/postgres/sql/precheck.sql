-- Whether a write $1 of tenant $2 is there, whether one of key digest $3 is in the
-- queue or held, and the number of the newest write of that key digest.
WITH {guard}
SELECT {state},
	EXISTS (SELECT 1 FROM @ledger_writes AS w WHERE w.id = $1 AND w.tenant = $2),
	EXISTS (SELECT 1 FROM @ledger_writes AS o
		WHERE o.about = $3 AND (o.state <> 'settled' OR o.due IS NOT NULL) AND (o.key_digest IS NOT NULL OR o.state = 'held')),
	coalesce((SELECT max(s.n) FROM @ledger_search AS s WHERE s.tenant = $2 AND s.key_digest = $3 AND s.key_digest <> ''), 0)
FROM g
