SELECT u.ticket, u.write, u.first, u.last, u.mark, w.id, w.tenant, w.tombstone, iif(u.first < 2, w.intent, NULL)
FROM ledger_unsealed AS u LEFT JOIN ledger_writes AS w ON w.n = u.write
WHERE u.ticket > ?1
ORDER BY u.ticket
LIMIT ?2
