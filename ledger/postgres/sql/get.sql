-- One write of one tenant.
WITH {guard}
SELECT {state}, {row} FROM g LEFT JOIN @ledger_writes AS w ON w.id = $1 AND w.tenant = $2
