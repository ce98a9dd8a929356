-- Whether what is not sealed is remembered, and all that was there is found, as it
-- stands now.
SELECT g.chronicle, g.found = '~' AND g.found_tenant IS NULL FROM @ledger_meta AS g WHERE g.one = 1
