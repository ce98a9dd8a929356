-- What is settled and owes nothing, oldest first, behind a row: the writes to
-- be buried, or the tombstones to be forgotten; for this transaction alone.
SELECT {row}
FROM @ledger_writes AS w
WHERE w.state = 'settled' AND w.due IS NULL AND w.tombstone = $1::boolean
	AND w.settled_at BETWEEN $2::bigint AND $4::bigint AND (w.settled_at > $2::bigint OR w.n > $3::bigint)
ORDER BY w.settled_at, w.n
LIMIT $5::int
FOR UPDATE SKIP LOCKED
