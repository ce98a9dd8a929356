-- The oldest changes without a number get the next ones. It must begin when the
-- lock is there: only then it sees all that the one before it has left.
WITH d AS (DELETE FROM @ledger_untold AS u
	WHERE u.n = ANY (ARRAY(SELECT x.n FROM @ledger_untold AS x ORDER BY x.n LIMIT $1::bigint))
	RETURNING u.*),
i AS (INSERT INTO @ledger_changes (n, at, tenant, write, seq, kind, settlement, destination, sends, reads, saved)
	SELECT $2::bigint + row_number() OVER (ORDER BY d.n), d.at, d.tenant, d.write, d.seq, d.kind, d.settlement, d.destination, d.sends, d.reads, d.saved
	FROM d)
UPDATE @ledger_told AS t SET last = $2::bigint + (SELECT count(*) FROM d) WHERE t.one = 1 RETURNING t.last
