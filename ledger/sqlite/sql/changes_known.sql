-- The oldest and the newest number of a change, and when that of a number
-- happened.
SELECT (SELECT min(o.n) FROM ledger_changes AS o), (SELECT max(l.n) FROM ledger_changes AS l),
	(SELECT h.at FROM ledger_changes AS h WHERE h.n = ?1)
