DELETE FROM @ledger_papers AS x USING unnest($1::text[], $2::text[], $3::text[]) AS p (tenant, kind, id)
WHERE x.tenant = p.tenant AND x.kind = p.kind AND x.id = p.id
