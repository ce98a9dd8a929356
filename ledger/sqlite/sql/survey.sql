-- What is open, counted: what has a due time, then what has none.
SELECT w.tenant, w.destination, w.state, count(*),
	sum(w.due <= ?1 AND w.lease_until = 0), sum(w.lease_until > ?1), sum(w.due <= ?1 AND w.lease_until > 0 AND w.lease_until <= ?1), 0,
	min(iif(w.due <= ?1 AND w.lease_until <= ?1, w.due, NULL)), min(w.created)
FROM ledger_writes AS w
WHERE w.due IS NOT NULL AND w.damaged IS NULL
GROUP BY w.destination, w.tenant, w.state
UNION ALL
SELECT w.tenant, w.destination, w.state, count(*),
	0, sum(w.lease_until > ?1), 0, sum(w.behind IS NOT NULL AND w.lease_until <= ?1),
	NULL, min(w.created)
FROM ledger_writes AS w
WHERE w.due IS NULL AND w.state <> 'settled' AND w.damaged IS NULL
GROUP BY w.destination, w.tenant, w.state
