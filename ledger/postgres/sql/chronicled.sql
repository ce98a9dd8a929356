-- Whether what is not sealed is remembered, and how far what was there is found,
-- when nobody can change a write.
SELECT g.chronicle, g.found, g.found_tenant IS NULL, coalesce(g.found_tenant, ''), coalesce(g.found_kind, ''), coalesce(g.found_paper, '')
FROM @ledger_meta AS g WHERE g.one = 1 FOR UPDATE
