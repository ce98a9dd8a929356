-- Whether what is not sealed is remembered, as it stands now.
SELECT g.chronicle FROM @ledger_meta AS g WHERE g.one = 1
