-- The events of one write of one tenant, beside how many there should be.
WITH {guard}
SELECT {state}, w.n, w.seq, w.tombstone, e.seq, e.body, e.evidence, e.mismatches
FROM g LEFT JOIN @ledger_writes AS w ON w.id = $1 AND w.tenant = $2
LEFT JOIN @ledger_events AS e ON e.write = w.n
ORDER BY e.seq
