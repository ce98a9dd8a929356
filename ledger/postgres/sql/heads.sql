-- The first entry of some lines, for this transaction alone: so many lines from
-- one on, in the order of their digests. The walk jumps from one line to the
-- next, so that a long line costs no more than a short one. Entries that
-- somebody else is just taking in are passed over, and with them the rest of
-- their lines.
SELECT o.n, o.id, o.tenant, o.key_digest, o.intent
FROM @ledger_outbox AS o
WHERE o.refused IS NULL AND o.n = ANY (ARRAY(
	WITH RECURSIVE walk AS (
		(SELECT h.key_digest, h.n, 1 AS step FROM @ledger_outbox AS h
		WHERE h.refused IS NULL AND h.key_digest > $1::text
		ORDER BY h.key_digest, h.n LIMIT 1)
		UNION ALL
		SELECT x.key_digest, x.n, p.step + 1 FROM walk AS p CROSS JOIN LATERAL (
			SELECT h.key_digest, h.n FROM @ledger_outbox AS h
			WHERE h.refused IS NULL AND h.key_digest > p.key_digest
			ORDER BY h.key_digest, h.n LIMIT 1) AS x
		WHERE p.step < $2::int)
	SELECT walk.n FROM walk))
ORDER BY o.key_digest
FOR UPDATE SKIP LOCKED
