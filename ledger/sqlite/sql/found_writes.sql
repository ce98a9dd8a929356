INSERT INTO ledger_unsealed (ticket, write, first, last)
SELECT ?1 + row_number() OVER (ORDER BY w.n), w.n, 0, w.seq FROM ledger_writes AS w WHERE w.n > ?2 AND w.n <= ?3
