-- Changes of one tenant behind a number.
SELECT c.n, c.at, c.tenant, c.write, c.seq, c.kind, c.settlement, c.destination, c.sends, c.reads, c.saved
FROM ledger_changes AS c
WHERE c.tenant = ?3 AND c.n > ?1
ORDER BY c.n
LIMIT ?2
