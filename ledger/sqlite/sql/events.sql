SELECT e.body, e.evidence, e.mismatches
FROM ledger_events AS e
WHERE e.write = ?1
ORDER BY e.seq
