-- One paper, beside the state of the database.
WITH {guard}
SELECT {state}, {paper} FROM g LEFT JOIN @ledger_papers AS p ON p.tenant = $1::text AND p.kind = $2::text AND p.id = $3::text
