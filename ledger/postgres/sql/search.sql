-- name: search
-- Writes after number $2 whose columns match, at most $10 of the next $3; with how many
-- were read, the last of them, and the earliest and the latest time at which one of
-- them was created. $4 to $9: states, a destination, from when to before when it was
-- created, and the possible settlements, as they are written in the body.
WITH {guard},
c AS MATERIALIZED ({walk}),
b AS MATERIALIZED (SELECT x.* FROM c CROSS JOIN LATERAL (SELECT w.* FROM @ledger_writes AS w WHERE w.id = c.id OFFSET 0) AS x),
f AS (SELECT b.* FROM b
	WHERE (cardinality($4::text[]) = 0 OR b.state = ANY ($4::text[])) AND ($5::text = '' OR b.destination = $5::text)
		AND b.created >= $6::bigint AND b.created < $7::bigint
		AND (b.state <> 'settled' OR $8::boolean OR b.body LIKE ANY ($9::text[]) OR b.body NOT LIKE '%"settlement":%')
	ORDER BY b.n {direction} LIMIT $10::bigint)
SELECT (SELECT count(*) FROM c), coalesce((SELECT c.n FROM c ORDER BY c.n {backwards} LIMIT 1), 0),
	coalesce((SELECT min(b.created) FROM b), 0), coalesce((SELECT max(b.created) FROM b), 0), {state}, {found}
FROM g LEFT JOIN f AS w ON TRUE
ORDER BY w.n {direction}

-- name: search_by_term
SELECT s.n, s.id FROM @ledger_search AS s
	WHERE s.tenant = $1::text AND s.{term} = $11::text{present} AND s.n {beyond} $2::bigint
	ORDER BY s.n {direction} LIMIT $3::bigint

-- name: search_by_operation
-- The writes with an idempotency key: those that may block others, of which there is one
-- for each window, and those that block none.
SELECT x.id, x.n FROM (
		SELECT w.id, w.n FROM @ledger_writes AS w WHERE w.tenant = $1::text AND w.idempotency_key = $11::text AND w.holds
		UNION ALL
		SELECT w.id, w.n FROM @ledger_writes AS w
		WHERE w.tenant = $1::text AND w.idempotency_key = $11::text AND w.blocks IS NOT NULL AND NOT w.holds
		UNION ALL
		(SELECT w.id, w.n FROM @ledger_writes AS w
		WHERE w.tenant = $1::text AND w.idempotency_key = $11::text AND w.idempotency_key <> '' AND w.blocks IS NULL AND w.n {beyond} $2::bigint
		ORDER BY w.n {direction} LIMIT $3::bigint)) AS x
	WHERE x.n {beyond} $2::bigint
	ORDER BY x.n {direction} LIMIT $3::bigint

-- name: search_by_state
SELECT x.id, x.n FROM unnest($11::text[]) AS s (state) CROSS JOIN LATERAL (
		SELECT w.id, w.n FROM @ledger_writes AS w
		WHERE w.tenant = $1::text AND w.state = s.state AND w.n {beyond} $2::bigint
		ORDER BY w.n {direction} LIMIT $3::bigint) AS x
	ORDER BY x.n {direction} LIMIT $3::bigint

-- name: search_by_waits
SELECT x.id, x.n FROM unnest($11::text[]) AS s (waits) CROSS JOIN LATERAL (
		SELECT w.id, w.n FROM @ledger_writes AS w
		WHERE w.tenant = $1::text AND w.waits = s.waits AND w.waits IS NOT NULL AND w.n {beyond} $2::bigint
		ORDER BY w.n {direction} LIMIT $3::bigint) AS x
	ORDER BY x.n {direction} LIMIT $3::bigint

-- name: waiting
-- The writes of one tenant that wait for a reviewer, counted, and of each group those
-- created before three times.
WITH {guard},
q AS (SELECT w.waits, count(*) AS count, count(*) FILTER (WHERE w.created < $2::bigint) AS first,
		count(*) FILTER (WHERE w.created < $3::bigint) AS second, count(*) FILTER (WHERE w.created < $4::bigint) AS third
	FROM @ledger_writes AS w
	WHERE w.tenant = $1::text AND w.waits IS NOT NULL
	GROUP BY w.waits ORDER BY w.waits LIMIT $5::bigint)
SELECT {state}, coalesce(q.waits, ''), coalesce(q.count, 0), coalesce(q.first, 0), coalesce(q.second, 0), coalesce(q.third, 0)
FROM g LEFT JOIN q ON TRUE
ORDER BY q.waits

-- name: search_by_terms
-- The writes of the lots $13 that have a term from one of $11 to before that of $12, of
-- which one write may have several, or an id from $14 to before $15.
SELECT x.n, x.id FROM (
		SELECT t.n, t.id FROM unnest($13::bigint[]) AS l (lot) CROSS JOIN unnest($11::text[], $12::text[]) AS r (low, high)
			CROSS JOIN LATERAL (SELECT DISTINCT s.n, s.id FROM @ledger_terms AS s
				WHERE s.lot = l.lot AND s.tenant = $1::text AND s.term >= r.low AND s.term < r.high AND s.n {beyond} $2::bigint
				ORDER BY s.n {direction} LIMIT $3::bigint) AS t
		UNION
		SELECT w.n, w.id FROM @ledger_writes AS w
		WHERE w.id >= $14::text AND w.id < $15::text AND w.tenant = $1::text AND w.n {beyond} $2::bigint AND w.n / {lot} = ANY ($13::bigint[])) AS x
	ORDER BY x.n {direction} LIMIT $3::bigint

-- name: term_lots
-- The first and the last lot with a write of a tenant.
SELECT coalesce(min(x.n), 0) / {lot}, coalesce(max(x.n), 0) / {lot} FROM unnest($2::text[]) AS s (state) CROSS JOIN LATERAL (
		(SELECT w.n FROM @ledger_writes AS w WHERE w.tenant = $1::text AND w.state = s.state ORDER BY w.n LIMIT 1)
		UNION ALL
		(SELECT w.n FROM @ledger_writes AS w WHERE w.tenant = $1::text AND w.state = s.state ORDER BY w.n DESC LIMIT 1)) AS x

-- name: delete_terms
-- Deletes the terms of some writes of one tenant in one lot.
DELETE FROM @ledger_terms WHERE lot = $1::bigint AND tenant = $2::text AND n = ANY ($3::bigint[])

-- name: erase_search
UPDATE @ledger_search AS s SET workflow = '', correlation_id = ''
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS w (tenant, workflow, n)
WHERE s.tenant = w.tenant AND s.workflow = w.workflow AND s.n = w.n

-- name: delete_search
DELETE FROM @ledger_search AS s USING unnest($1::text[], $2::text[], $3::bigint[]) AS w (tenant, workflow, n)
WHERE s.tenant = w.tenant AND s.workflow = w.workflow AND s.n = w.n
