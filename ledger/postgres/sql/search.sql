-- Writes behind number $2, as far as their columns fit, at most $10 of the next
-- $3; beside how many were looked at, the last of them, and the earliest and the
-- latest time at which one of them was created. $4 to $9: states, a destination,
-- from when to before when it was created, and how a settled one may have ended,
-- as it stands in its body.
WITH {guard},
c AS MATERIALIZED ({walk}),
b AS MATERIALIZED (SELECT x.* FROM c CROSS JOIN LATERAL (SELECT w.* FROM @ledger_writes AS w WHERE w.id = c.id OFFSET 0) AS x),
f AS (SELECT b.* FROM b
	WHERE (cardinality($4::text[]) = 0 OR b.state = ANY ($4::text[])) AND ($5::text = '' OR b.destination = $5::text)
		AND b.created >= $6::bigint AND b.created < $7::bigint
		AND (b.state <> 'settled' OR $8::boolean OR b.body LIKE ANY ($9::text[]) OR b.body NOT LIKE '%"settlement":%')
	ORDER BY b.n {direction} LIMIT $10::bigint)
SELECT (SELECT count(*) FROM c), coalesce((SELECT c.n FROM c ORDER BY c.n {backwards} LIMIT 1), 0),
	coalesce((SELECT min(b.created) FROM b), 0), coalesce((SELECT max(b.created) FROM b), 0), {state}, {row}
FROM g LEFT JOIN f AS w ON TRUE
ORDER BY w.n {direction}
