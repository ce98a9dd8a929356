-- Which writes have events that are not sealed?
SELECT u.write FROM @ledger_unsealed AS u WHERE u.write IS NOT NULL LIMIT $1::bigint
