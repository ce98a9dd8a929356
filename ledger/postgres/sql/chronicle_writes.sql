INSERT INTO @ledger_unsealed (write, id, last) SELECT w.n, w.id, w.seq FROM @ledger_writes AS w ORDER BY w.n
