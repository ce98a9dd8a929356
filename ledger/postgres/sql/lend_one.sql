-- One write, lent, if it may be: $6 takes it before it is due; $8 are paused
-- destinations, $9 those of which nothing is wanted, and $10 is an owner whose lease
-- counts for nothing. Where a lock made its time
-- stale, with which the lease begins, it ends with an error.
WITH {guard},
w AS (UPDATE @ledger_writes AS w SET owner = $5, lease_for = $7, lease_until = least(g.now::numeric + $7::bigint, 9223372036854775807)::bigint, fence = w.fence + 1
	FROM g
	WHERE w.id = $3 AND w.tenant = $4 AND w.behind IS NULL AND NOT w.tombstone AND w.state <> 'entrusted' AND (w.lease_until <= g.now OR w.owner = NULLIF($10::text, ''))
		AND ($6::boolean OR w.due <= g.now)
		AND NOT (w.state = 'queued' AND w.destination = ANY ($8::text[])) AND NOT w.destination = ANY ($9::text[])
		AND g.compatible_from <= $1 AND NOT g.standby AND g.newest <= g.now + $2::bigint
	RETURNING w.*, {clock} AS stored)
SELECT {state}, {row} FROM g LEFT JOIN w ON 1 = 1 / {timely}
