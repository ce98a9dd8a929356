-- Whether what is not sealed is remembered, when nobody can change a write.
SELECT g.chronicle FROM @ledger_meta AS g WHERE g.one = 1 FOR UPDATE
