-- A note that is there, if it still is as its writer has seen it.
WITH {guard},
w AS (UPDATE @ledger_notes AS o SET version = o.version + 1, value = $3::bytea, at = greatest(o.at, g.now)
	FROM g WHERE o.name = $2::text AND o.version = $4::bigint AND length(o.value) > 0
		AND g.compatible_from <= $1 AND NOT g.standby
	RETURNING o.version, o.at)
SELECT {state}, coalesce(w.version, 0), coalesce(w.at, 0) FROM g LEFT JOIN w ON TRUE
