-- The oldest due of some parties, so many of each, lent. Rows that another
-- worker is just taking are passed over.
WITH {guard},
picked AS (
	SELECT x.id, p.lease FROM g CROSS JOIN unnest($3::text[], $4::text[], $5::text[], $6::bigint[], $8::bigint[]) AS p (destination, tenant, state, share, lease)
	CROSS JOIN LATERAL (
		SELECT w.id FROM @ledger_writes AS w
		WHERE w.destination = p.destination AND w.tenant = p.tenant AND w.state = p.state
			AND w.due <= g.now AND w.due IS NOT NULL AND w.lease_until <= g.now AND w.damaged IS NULL
		ORDER BY w.due LIMIT p.share FOR UPDATE SKIP LOCKED) AS x
	WHERE g.compatible_from <= $1 AND NOT g.standby AND g.newest <= g.now + $2::bigint),
w AS (UPDATE @ledger_writes AS w SET owner = $7, lease_for = picked.lease, lease_until = least(g.now::numeric + picked.lease, 9223372036854775807)::bigint, fence = w.fence + 1
	FROM picked CROSS JOIN g WHERE w.id = picked.id
	RETURNING w.*)
SELECT {state}, {row} FROM g LEFT JOIN w ON TRUE
