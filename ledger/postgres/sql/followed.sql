-- Which of these does another write wait for?
SELECT w.behind FROM @ledger_writes AS w WHERE w.behind = ANY ($1::text[])
