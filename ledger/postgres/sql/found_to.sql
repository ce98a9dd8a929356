-- Up to which write the ledger was gone over; behind all where nobody seals.
SELECT CASE WHEN g.chronicle THEN g.found ELSE '~' END FROM @ledger_meta AS g WHERE g.one = 1
