SELECT w.tenant FROM ledger_writes AS w UNION SELECT p.tenant FROM ledger_papers AS p ORDER BY 1
