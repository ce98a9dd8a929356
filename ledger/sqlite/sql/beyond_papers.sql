-- How far the next portion of papers goes, and how many these are.
SELECT max(x.n), count(*) FROM (SELECT p.n FROM ledger_papers AS p WHERE p.n > ?1 ORDER BY p.n LIMIT ?2) AS x
