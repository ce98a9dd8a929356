DELETE FROM @ledger_search AS s USING unnest($1::text[], $2::text[], $3::bigint[]) AS w (tenant, workflow, n)
WHERE s.tenant = w.tenant AND s.workflow = w.workflow AND s.n = w.n
