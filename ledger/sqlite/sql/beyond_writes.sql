-- How far the next portion of writes goes, and how many these are.
SELECT max(x.n), count(*) FROM (SELECT w.n FROM ledger_writes AS w WHERE w.n > ?1 ORDER BY w.n LIMIT ?2) AS x
