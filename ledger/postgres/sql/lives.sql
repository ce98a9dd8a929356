WITH {guard}
SELECT {state}, {row}
FROM g LEFT JOIN (SELECT * FROM @ledger_writes AS x WHERE x.id > $1::text ORDER BY x.id LIMIT $2::bigint) AS w ON TRUE
ORDER BY w.id
