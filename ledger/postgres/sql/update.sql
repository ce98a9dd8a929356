-- Writes as they are after more events, each if it still is as it was: same
-- fence, same seq, and, when it leaves its line, nobody who may stand behind it
-- unless the caller sees to that. $1 to $3 as in insert.sql, and as there it ends
-- with an error where a lock made its time stale.
WITH {guard}{papers},
i AS (SELECT * FROM {rows}
	AS i (id, was_fence, was_seq, alone, state, due, settled_at, key_digest, behind, seq, body,
		before, evidence, mismatches, child_intent, owner, lease_until, lease_for, fence, blocks)),
w AS (UPDATE @ledger_writes AS w SET
		state = i.state, due = NULLIF(i.due, 0), settled_at = NULLIF(i.settled_at, 0), key_digest = NULLIF(i.key_digest, ''),
		behind = NULLIF(i.behind, ''), seq = i.seq, body = i.body, before = i.before, evidence = i.evidence,
		mismatches = i.mismatches, child_intent = i.child_intent, owner = i.owner, lease_until = i.lease_until,
		lease_for = i.lease_for, fence = i.fence, holds = w.holds AND i.blocks <> 0, blocks = NULLIF(i.blocks, 0),
		followed = w.followed AND i.key_digest <> '', damaged = NULL
	FROM i CROSS JOIN g
	WHERE w.id = i.id AND w.fence = i.was_fence AND w.seq = i.was_seq AND NOT (i.alone AND w.followed)
		AND g.compatible_from <= $1 AND NOT g.standby AND g.now - $2::bigint BETWEEN 0 AND $3::bigint AND {unmoved}{whole}
	RETURNING w.n, w.id, w.tenant, w.destination, {clock} AS stored),
x AS (SELECT * FROM {events} AS x (id, seq, body, evidence, mismatches, kind, settlement, at, sends, reads, saved)),
e AS (INSERT INTO @ledger_events (write, seq, body, evidence, mismatches)
	SELECT w.n, x.seq, x.body, x.evidence, x.mismatches
	FROM w JOIN x ON x.id = w.id),
u AS (INSERT INTO @ledger_untold (at, tenant, write, seq, kind, settlement, destination, sends, reads, saved)
	SELECT x.at, w.tenant, w.id, x.seq, x.kind, x.settlement, w.destination, x.sends, x.reads, x.saved
	FROM w JOIN x ON x.id = w.id WHERE x.kind <> '' ORDER BY x.id, x.seq),
r AS (INSERT INTO @ledger_unsealed (write, id, first, last)
	SELECT w.n, w.id, min(x.seq), max(x.seq) FROM w JOIN x ON x.id = w.id CROSS JOIN g WHERE g.chronicle AND w.id <= g.found
	GROUP BY w.n, w.id ORDER BY w.id){filed}
SELECT {state}, ARRAY(SELECT w.id FROM w), ARRAY(SELECT w.n / {timely} FROM w){answer} FROM g
