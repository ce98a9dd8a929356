DELETE FROM @ledger_unsealed AS u
WHERE u.ticket <= (SELECT max(x.ticket) FROM (SELECT f.ticket FROM @ledger_unsealed AS f ORDER BY f.ticket LIMIT $1::bigint) AS x)
