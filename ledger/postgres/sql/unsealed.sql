-- Nothing where it is switched off, though some of it may be left.
WITH {guard}
SELECT {state}, coalesce(u.ticket, 0), coalesce(u.write, 0), coalesce(u.id, ''), coalesce(u.first, 0), coalesce(u.last, 0), u.mark, {row}
FROM g LEFT JOIN (SELECT * FROM @ledger_unsealed AS x WHERE x.ticket > $1::bigint ORDER BY x.ticket LIMIT $2::bigint) AS u ON g.chronicle
LEFT JOIN @ledger_writes AS w ON w.id = u.id
ORDER BY u.ticket
