-- Marks of what is not told by events, where they are remembered.
INSERT INTO @ledger_unsealed (mark)
SELECT m.mark FROM unnest($1::text[]) WITH ORDINALITY AS m (mark, ord)
WHERE (SELECT g.chronicle FROM @ledger_meta AS g WHERE g.one = 1) ORDER BY m.ord
