-- A note that is not there, or was removed: then its row is there, with its
-- version, so that no later one of the same name is taken for it.
WITH {guard},
w AS (INSERT INTO @ledger_notes AS o (name, version, value, at)
	SELECT $2::text, 1, $3::bytea, g.now FROM g WHERE g.compatible_from <= $1 AND NOT g.standby
	ON CONFLICT (name) DO UPDATE SET version = o.version + 1, value = excluded.value, at = greatest(o.at, excluded.at)
	WHERE length(o.value) = 0
	RETURNING o.version, o.at)
SELECT {state}, coalesce(w.version, 0), coalesce(w.at, 0) FROM g LEFT JOIN w ON TRUE
