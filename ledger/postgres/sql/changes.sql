-- Changes behind a number, beside which ones there are, whether there are some that
-- have no number yet, and when that of the number, and the last one, happened.
WITH {guard}
SELECT {state}, t.last, coalesce((SELECT m.at FROM @ledger_changes AS m WHERE m.n = t.last), 0), coalesce((SELECT min(o.n) FROM @ledger_changes AS o), t.last + 1),
	(SELECT h.at FROM @ledger_changes AS h WHERE h.n = $1::bigint), (SELECT min(u.n) FROM @ledger_untold AS u) IS NOT NULL,
	coalesce(c.n, 0), coalesce(c.at, 0), coalesce(c.tenant, ''), coalesce(c.write, ''), coalesce(c.seq, 0), coalesce(c.kind, ''),
	coalesce(c.settlement, ''), coalesce(c.destination, ''), coalesce(c.sends, 0), coalesce(c.reads, 0), coalesce(c.saved, FALSE)
FROM g CROSS JOIN @ledger_told AS t LEFT JOIN (
	SELECT x.* FROM @ledger_changes AS x
	WHERE {of} ORDER BY x.n LIMIT $2::bigint) AS c ON TRUE
ORDER BY c.n
