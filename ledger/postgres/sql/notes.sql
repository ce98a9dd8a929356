WITH {guard}
SELECT {state}, coalesce(o.name, ''), coalesce(o.version, 0), o.value, coalesce(o.at, 0)
FROM g LEFT JOIN @ledger_notes AS o
	ON o.name >= $1::text AND substr(o.name, 1, length($1::text)) = $1::text AND length(o.value) > 0
ORDER BY o.name
