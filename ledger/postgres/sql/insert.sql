-- New writes with their events, as far as nothing is in the way of each: it is
-- there already, its business operation was begun before, its line has a head,
-- something of its line stands in the outbox, or its pre-state was read before
-- another write of its key digest was recorded (newest: the number of the newest
-- one then, -1 where none was read). $1 to $3: the version of the
-- program, the time of the change, and how far that may lag behind; $4: the
-- newest time on record with which the clock is trusted; $5: whether the
-- caller has looked for what is in the way. Where it waited for somebody who made
-- the same and gave it up, its time is stale, and it ends with an error.
WITH {guard}{papers},
i AS (SELECT * FROM {rows}
	AS i (id, tenant, destination, tool, structural_key, idempotency_key, about, created, intent, step_of, workflow, correlation_id, newest,
		state, due, settled_at, key_digest, behind, seq, body,
		before, evidence, mismatches, child_intent, owner, lease_until, lease_for, fence, blocks)),
w AS (INSERT INTO @ledger_writes AS w (id, tenant, destination, tool, structural_key, idempotency_key, about, created, intent, step_of,
		state, due, settled_at, key_digest, behind, seq, body,
		before, evidence, mismatches, child_intent, owner, lease_until, lease_for, fence, holds, blocks)
	SELECT i.id, i.tenant, i.destination, i.tool, i.structural_key, i.idempotency_key, NULLIF(i.about, ''), i.created, i.intent, i.step_of,
		i.state, NULLIF(i.due, 0), NULLIF(i.settled_at, 0), NULLIF(i.key_digest, ''), NULLIF(i.behind, ''), i.seq, i.body,
		i.before, i.evidence, i.mismatches, i.child_intent, i.owner, i.lease_until, i.lease_for, i.fence, i.blocks <> 0, NULLIF(i.blocks, 0)
	FROM i CROSS JOIN g
	WHERE g.compatible_from <= $1 AND NOT g.standby AND g.now - $2::bigint BETWEEN 0 AND $3::bigint AND g.newest <= $4::bigint AND {unmoved}
		AND (i.newest < 0 OR NOT EXISTS (SELECT 1 FROM @ledger_search AS r
			WHERE r.tenant = i.tenant AND r.key_digest = i.about AND r.key_digest <> '' AND r.n > i.newest))
		AND ($5::boolean
			OR NOT EXISTS (SELECT 1 FROM @ledger_outbox AS o WHERE o.key_digest = i.about AND o.key_digest <> '' AND o.refused IS NULL)
			AND NOT EXISTS (SELECT 1 FROM @ledger_writes AS p
				WHERE p.tenant = i.tenant AND p.tool = i.tool AND p.idempotency_key = i.idempotency_key AND p.blocks IS NOT NULL)){whole}
	ORDER BY i.id
	ON CONFLICT DO NOTHING
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
	GROUP BY w.n, w.id ORDER BY w.id),
s AS (INSERT INTO @ledger_search (n, id, tenant, workflow, correlation_id, idempotency_key, key_digest)
	SELECT w.n, w.id, i.tenant, i.workflow, i.correlation_id, i.idempotency_key, i.about FROM w JOIN i ON i.id = w.id){filed}
SELECT {state}, ARRAY(SELECT w.id FROM w), ARRAY(SELECT w.n / {timely} FROM w){answer} FROM g
