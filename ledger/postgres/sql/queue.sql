-- name: tail
-- Marks the last write of a queue as followed. Another transaction that queues behind
-- it waits here, and then finds that it is not the last.
UPDATE @ledger_writes AS w SET followed = TRUE
WHERE w.queue = $1 AND NOT w.followed
RETURNING {row}

-- name: untail
-- Makes the write the last of its queue again.
UPDATE @ledger_writes SET followed = FALSE WHERE id = $1

-- name: next
-- Locks the write that waits behind one.
SELECT {row} FROM @ledger_writes AS w WHERE w.queued_behind = $1 FOR UPDATE

-- name: headless
-- Whether a queue has no head.
SELECT NOT EXISTS (SELECT 1 FROM @ledger_writes WHERE queue = $1 AND queued_behind IS NULL)

-- name: parties
-- The parties after one, each with the due times of its due work. The recursion jumps
-- from one party to the next in the index and reads nothing between.
WITH RECURSIVE {guard},
walk AS (
	(SELECT w.destination, w.tenant, w.state, 1 AS step FROM @ledger_writes AS w
	WHERE w.due IS NOT NULL AND w.damaged IS NULL AND (w.destination, w.tenant, w.state) > ($1::text, $2::text, $3::text)
	ORDER BY w.destination, w.tenant, w.state LIMIT 1)
	UNION ALL
	SELECT x.destination, x.tenant, x.state, p.step + 1 FROM walk AS p CROSS JOIN LATERAL (
		SELECT w.destination, w.tenant, w.state FROM @ledger_writes AS w
		WHERE w.due IS NOT NULL AND w.damaged IS NULL AND (w.destination, w.tenant, w.state) > (p.destination, p.tenant, p.state)
		ORDER BY w.destination, w.tenant, w.state LIMIT 1) AS x
	WHERE p.step < $4::int)
SELECT {state}, EXISTS (SELECT 1 FROM @ledger_outbox WHERE refused IS NULL),
	coalesce(p.destination, ''), coalesce(p.tenant, ''), coalesce(p.state, ''), d.due
FROM g LEFT JOIN walk AS p ON TRUE
LEFT JOIN LATERAL (SELECT array_agg(x.due) AS due FROM (
	SELECT w.due FROM @ledger_writes AS w
	WHERE w.destination = p.destination AND w.tenant = p.tenant AND w.state = p.state
		AND w.due <= g.now AND w.due IS NOT NULL AND w.lease_until <= g.now - {skew} AND w.damaged IS NULL AND {owned:p.tenant}
	ORDER BY w.due
	LIMIT greatest($5::bigint, $6::bigint / (SELECT greatest(count(*), 1) FROM walk))) AS x) AS d ON TRUE
ORDER BY p.step

-- name: lend
-- Leases the oldest due of some parties, a given number of each. Rows that another
-- worker is leasing are skipped, or, where it takes no locks, found to be changed. If
-- those delayed it, it ends with an error.
WITH {guard},
picked AS (
	SELECT x.id, x.fence, p.lease FROM g CROSS JOIN unnest($3::text[], $4::text[], $5::text[], $6::bigint[], $8::bigint[]) AS p (destination, tenant, state, share, lease)
	CROSS JOIN LATERAL (
		SELECT w.id, w.fence FROM @ledger_writes AS w
		WHERE w.destination = p.destination AND w.tenant = p.tenant AND w.state = p.state
			AND w.due <= g.now AND w.due IS NOT NULL AND w.lease_until <= g.now - {skew} AND w.damaged IS NULL
		ORDER BY w.due LIMIT p.share FOR UPDATE SKIP LOCKED) AS x
	WHERE g.compatible_from <= $1 AND NOT g.standby AND g.newest <= g.now + $2::bigint AND {owned:p.tenant}),
w AS (UPDATE @ledger_writes AS w SET owner = $7, lease_for = picked.lease, lease_until = least(g.now::numeric + picked.lease, 9223372036854775807)::bigint, fence = w.fence + 1
	FROM picked CROSS JOIN g WHERE w.id = picked.id{free}
	RETURNING w.*, {clock} AS stored)
SELECT {state}, {row} FROM g LEFT JOIN w ON 1 = 1 / {timely}

-- name: lend_one
-- Leases one write, if that is allowed: $6 takes it before it is due; $8 are paused
-- destinations, $9 those from which nothing is wanted, and $10 is an owner whose lease
-- does not count. If a lock made its time stale, with which the lease begins, it ends
-- with an error.
WITH {guard},
w AS (UPDATE @ledger_writes AS w SET owner = $5, lease_for = $7, lease_until = least(g.now::numeric + $7::bigint, 9223372036854775807)::bigint, fence = w.fence + 1
	FROM g
	WHERE w.id = $3 AND w.tenant = $4 AND w.queued_behind IS NULL AND NOT w.tombstone AND w.state <> 'entrusted' AND (w.lease_until <= g.now - {skew} OR w.owner = NULLIF($10::text, ''))
		AND ($6::boolean OR w.due <= g.now)
		AND NOT (w.state = 'queued' AND w.destination = ANY ($8::text[])) AND NOT w.destination = ANY ($9::text[])
		AND g.compatible_from <= $1 AND NOT g.standby AND g.newest <= g.now + $2::bigint AND {owned:w.tenant}
	RETURNING w.*, {clock} AS stored)
SELECT {state}, {row} FROM g LEFT JOIN w ON 1 = 1 / {timely}

-- name: return_unreadable
-- Ends the leases of writes that cannot be read: they are marked with the reason, or,
-- when that is empty, skipped until a time.
UPDATE @ledger_writes AS w SET owner = '', lease_until = i.until, damaged = NULLIF(i.reason, '')
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[]) AS i (id, fence, reason, until)
WHERE w.id = i.id AND w.fence = i.fence

-- name: queue_stats
-- Writes that are open or have a pending recheck, counted: the heads of queues, and the
-- others.
WITH {guard},
q AS (SELECT w.tenant, w.destination, w.state, count(*) AS count,
		count(*) FILTER (WHERE w.due <= g.now AND (w.lease_until <= g.now AND w.owner = '' OR w.owner = 'dispatched')) AS due,
		count(*) FILTER (WHERE w.lease_until > g.now AND w.owner NOT IN ('', 'dispatched')) AS leased,
		count(*) FILTER (WHERE w.due <= g.now AND w.lease_until <= g.now AND w.owner NOT IN ('', 'dispatched')) AS orphaned,
		count(*) FILTER (WHERE w.due IS NULL AND w.queued_behind IS NOT NULL AND w.lease_until <= g.now) AS behind,
		min(w.due) FILTER (WHERE w.due <= g.now AND (w.lease_until <= g.now OR w.owner = 'dispatched')) AS oldest_due,
		min(w.created) AS oldest_created, sum(octet_length(w.intent))::bigint AS bytes
	FROM (
		SELECT h.* FROM @ledger_writes AS h WHERE h.queue IS NOT NULL AND h.queued_behind IS NULL
		UNION ALL
		SELECT o.* FROM @ledger_writes AS o
		WHERE (o.state <> 'settled' OR o.due IS NOT NULL) AND (o.queue IS NULL OR o.queued_behind IS NOT NULL)) AS w CROSS JOIN g
	WHERE w.damaged IS NULL
	GROUP BY w.tenant, w.destination, w.state)
SELECT {state}, coalesce(q.tenant, ''), coalesce(q.destination, ''), coalesce(q.state, ''), coalesce(q.count, 0),
	coalesce(q.due, 0), coalesce(q.leased, 0), coalesce(q.orphaned, 0), coalesce(q.behind, 0),
	coalesce(q.oldest_due, 0), coalesce(q.oldest_created, 0), coalesce(q.bytes, 0)
FROM g LEFT JOIN q ON TRUE
ORDER BY q.tenant, q.destination, q.state

-- name: held_or_in_review
-- Writes that wait for a reviewer and have no due time at which a claim would read
-- them.
WITH {guard}
SELECT {state}, {row} FROM g LEFT JOIN (
	SELECT x.* FROM (
		SELECT h.* FROM @ledger_writes AS h WHERE h.queue IS NOT NULL AND h.queued_behind IS NULL
		UNION ALL
		SELECT o.* FROM @ledger_writes AS o WHERE o.state <> 'settled' AND (o.queue IS NULL OR o.queued_behind IS NOT NULL)) AS x
	WHERE x.due IS NULL AND x.state IN ('held', 'review') AND x.damaged IS NULL
	LIMIT $1) AS w ON TRUE

-- name: damaged_writes
SELECT w.tenant, w.id, w.damaged, w.created FROM @ledger_writes AS w
WHERE w.damaged IS NOT NULL ORDER BY w.n LIMIT $1::bigint
