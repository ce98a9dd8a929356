-- name: insert_change
INSERT INTO ledger_changes (at, tenant, write, seq, kind, settlement, destination, sends, reads, saved)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)

-- name: change_numbers
-- The numbers of the oldest and the newest change, the time of the change with number
-- ?1, and that of the newest.
SELECT (SELECT min(o.n) FROM ledger_changes AS o), (SELECT max(l.n) FROM ledger_changes AS l),
	(SELECT h.at FROM ledger_changes AS h WHERE h.n = ?1),
	(SELECT m.at FROM ledger_changes AS m WHERE m.n = (SELECT max(x.n) FROM ledger_changes AS x))

-- name: changes
-- Changes after a number.
SELECT c.n, c.at, c.tenant, c.write, c.seq, c.kind, c.settlement, c.destination, c.sends, c.reads, c.saved
FROM ledger_changes AS c
WHERE c.n > ?1
ORDER BY c.n
LIMIT ?2

-- name: changes_of_tenant
-- Changes of one tenant after a number.
SELECT c.n, c.at, c.tenant, c.write, c.seq, c.kind, c.settlement, c.destination, c.sends, c.reads, c.saved
FROM ledger_changes AS c
WHERE c.tenant = ?3 AND c.n > ?1
ORDER BY c.n
LIMIT ?2

-- name: change_at
-- The time of the first change from a number on.
SELECT c.at
FROM ledger_changes AS c
WHERE c.n >= ?1
ORDER BY c.n
LIMIT 1

-- name: history
-- Changes of one tenant from number ?5 on, of destination ?6 or of all, from one time to
-- before another, counted in spans of ?4.
SELECT (c.at - ?2) / ?4 AS span, c.kind, c.settlement, count(*), sum(c.saved), sum(c.sends), sum(c.reads)
FROM ledger_changes AS c
WHERE c.tenant = ?1 AND c.n >= ?5 AND c.at >= ?2 AND c.at < ?3 AND (?6 = '' OR c.destination = ?6)
GROUP BY span, c.kind, c.settlement

-- name: old_changes
-- The oldest changes, except the last of all.
SELECT c.n, c.at
FROM ledger_changes AS c
WHERE c.n < (SELECT max(l.n) FROM ledger_changes AS l)
ORDER BY c.n
LIMIT ?1

-- name: delete_changes
DELETE FROM ledger_changes WHERE n <= ?1
