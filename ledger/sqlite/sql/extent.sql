-- The first and the last number of a write.
SELECT (SELECT min(f.n) FROM ledger_writes AS f), (SELECT max(l.n) FROM ledger_writes AS l)
