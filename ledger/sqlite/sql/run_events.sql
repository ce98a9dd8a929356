SELECT e.body, e.evidence, e.mismatches
FROM ledger_events AS e
WHERE e.write = ?1 AND e.seq BETWEEN ?2 AND ?3
ORDER BY e.seq
