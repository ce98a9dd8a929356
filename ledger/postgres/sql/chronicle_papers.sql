INSERT INTO @ledger_unsealed (mark)
SELECT json_build_object('kind', 'found', 'tenant', x.tenant, 'paper_kind', x.kind, 'paper_id', x.id)::text
FROM @ledger_papers AS x WHERE x.kind <> $1::text ORDER BY x.came, x.n
