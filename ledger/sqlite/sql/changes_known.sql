-- The oldest and the newest number of a change, when that of a number happened,
-- and when the newest did.
SELECT (SELECT min(o.n) FROM ledger_changes AS o), (SELECT max(l.n) FROM ledger_changes AS l),
	(SELECT h.at FROM ledger_changes AS h WHERE h.n = ?1),
	(SELECT m.at FROM ledger_changes AS m WHERE m.n = (SELECT max(x.n) FROM ledger_changes AS x))
