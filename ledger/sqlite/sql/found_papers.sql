INSERT INTO ledger_unsealed (ticket, first, last, mark)
SELECT ?1 + row_number() OVER (ORDER BY p.n), 0, 0, json_object('kind', 'found', 'tenant', p.tenant, 'paper_kind', p.kind, 'paper_id', p.id)
FROM ledger_papers AS p WHERE p.n > ?2 AND p.n <= ?3 AND p.kind <> 'audit'
