-- Which of these are still not sealed?
SELECT u.ticket FROM @ledger_unsealed AS u WHERE u.ticket = ANY ($1::bigint[])
