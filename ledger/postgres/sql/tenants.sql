SELECT w.tenant FROM @ledger_writes AS w UNION SELECT x.tenant FROM @ledger_papers AS x ORDER BY 1
