-- Changes of one tenant from number ?5 on, from one time to before another,
-- counted in spans of ?4.
SELECT (c.at - ?2) / ?4 AS span, c.kind, c.settlement, count(*), sum(c.saved), sum(c.sends), sum(c.reads)
FROM ledger_changes AS c
WHERE c.tenant = ?1 AND c.n >= ?5 AND c.at >= ?2 AND c.at < ?3
GROUP BY span, c.kind, c.settlement
