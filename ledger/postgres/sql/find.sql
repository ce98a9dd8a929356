-- One write, beside the state of the database. The row of the write is NULL
-- when there is none.
WITH {guard}
SELECT {state}, {row} FROM g LEFT JOIN @ledger_writes AS w ON w.id = $1
