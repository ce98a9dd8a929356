-- A row for each event of a run, and one for a run without any. That the numbers of
-- events are compared with columns, and not with parameters, saves SQLite from
-- planning anew for each run.
SELECT u.ticket, u.write, u.first, u.last, u.mark, w.id, w.tenant, w.tombstone, iif(u.first < 2, w.intent, NULL), e.body, e.evidence, e.mismatches
FROM ledger_unsealed AS u
LEFT JOIN ledger_writes AS w ON w.n = u.write
LEFT JOIN ledger_events AS e ON e.write = w.n AND e.seq >= u.first AND e.seq <= u.last AND (u.first > 0 OR NOT w.tombstone)
WHERE u.ticket > ?1
ORDER BY u.ticket, e.seq
