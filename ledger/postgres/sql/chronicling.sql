-- Whether what is not sealed is remembered, whether all that was there is found, and
-- whether anything is left of it, as it stands now.
SELECT g.chronicle, g.found = '~' AND g.found_tenant IS NULL, EXISTS (SELECT 1 FROM @ledger_unsealed) FROM @ledger_meta AS g WHERE g.one = 1
