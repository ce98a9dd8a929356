-- Which writes have events that are not sealed?
SELECT u.write FROM @ledger_unsealed AS u WHERE u.write IS NOT NULL
	AND (SELECT g.chronicle FROM @ledger_meta AS g WHERE g.one = 1) LIMIT $1::bigint
