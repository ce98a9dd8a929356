-- The events of runs: of each write from one number to another.
SELECT i.ord, e.body, e.evidence, e.mismatches
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS i (write, first, last, ord)
JOIN @ledger_events AS e ON e.write = i.write AND e.seq BETWEEN i.first AND i.last
ORDER BY i.ord, e.seq
