-- Whoever gives numbers to changes does so alone.
SELECT t.last FROM @ledger_told AS t WHERE t.one = 1 FOR UPDATE
