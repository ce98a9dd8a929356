-- name: changes
-- Changes after a number, with the range of existing ones, whether some have no number
-- yet, and the times of the change with that number and of the last one.
WITH {guard}
SELECT {state}, t.last, coalesce((SELECT m.at FROM @ledger_changes AS m WHERE m.n = t.last), 0), coalesce((SELECT min(o.n) FROM @ledger_changes AS o), t.last + 1),
	(SELECT h.at FROM @ledger_changes AS h WHERE h.n = $1::bigint), (SELECT min(u.n) FROM @ledger_unpublished AS u) IS NOT NULL,
	coalesce(c.n, 0), coalesce(c.at, 0), coalesce(c.tenant, ''), coalesce(c.write, ''), coalesce(c.seq, 0), coalesce(c.kind, ''),
	coalesce(c.settlement, ''), coalesce(c.destination, ''), coalesce(c.sends, 0), coalesce(c.reads, 0), coalesce(c.saved, FALSE)
FROM g CROSS JOIN @ledger_published AS t LEFT JOIN (
	SELECT x.* FROM @ledger_changes AS x
	WHERE {of} ORDER BY x.n LIMIT $2::bigint) AS c ON TRUE
ORDER BY c.n

-- name: history
-- Changes of one tenant, of destination $5 or of all, from one time to before another,
-- counted in spans of $4.
WITH {guard},
c AS (SELECT (x.at - $2::bigint) / $4::bigint AS span, x.kind, x.settlement, count(*) AS count,
		count(*) FILTER (WHERE x.saved) AS saved, sum(x.sends)::bigint AS sends, sum(x.reads)::bigint AS reads
	FROM @ledger_changes AS x
	WHERE x.tenant = $1::text AND x.at >= $2::bigint AND x.at < $3::bigint AND ($5::text = '' OR x.destination = $5::text)
	GROUP BY 1, x.kind, x.settlement)
SELECT {state}, coalesce(c.span, 0), coalesce(c.kind, ''), coalesce(c.settlement, ''), coalesce(c.count, 0), coalesce(c.saved, 0),
	coalesce(c.sends, 0), coalesce(c.reads, 0)
FROM g LEFT JOIN c ON TRUE

-- name: lock_feed
-- Only one transaction at a time numbers changes.
SELECT t.last FROM @ledger_published AS t WHERE t.one = 1 FOR UPDATE

-- name: number_changes
-- Gives the oldest changes without a number the next ones. It must begin after the lock
-- was acquired: only then it sees all that the previous transaction has committed.
WITH d AS (DELETE FROM @ledger_unpublished AS u
	WHERE u.n = ANY (ARRAY(SELECT x.n FROM @ledger_unpublished AS x ORDER BY x.n LIMIT $1::bigint))
	RETURNING u.*),
i AS (INSERT INTO @ledger_changes (n, at, tenant, write, seq, kind, settlement, destination, sends, reads, saved)
	SELECT $2::bigint + row_number() OVER (ORDER BY d.n), d.at, d.tenant, d.write, d.seq, d.kind, d.settlement, d.destination, d.sends, d.reads, d.saved
	FROM d)
UPDATE @ledger_published AS t SET last = $2::bigint + (SELECT count(*) FROM d) WHERE t.one = 1 RETURNING t.last

-- name: old_changes
-- The oldest changes, except the last of all.
SELECT c.n, c.at FROM @ledger_changes AS c
WHERE c.n < (SELECT t.last FROM @ledger_published AS t WHERE t.one = 1) ORDER BY c.n LIMIT $1::bigint

-- name: delete_changes
DELETE FROM @ledger_changes WHERE n <= $1::bigint
