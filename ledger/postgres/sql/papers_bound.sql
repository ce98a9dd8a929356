-- What is in a binder, its cover last, for this transaction alone, if all of it
-- has rested for long and none of it is in somebody's hands. Nobody is waited
-- for: whoever files a paper may be waiting for the cover.
WITH l AS MATERIALIZED (
	SELECT x.kind, x.id, x.n, x.due IS NULL AND x.updated <= $4::bigint AS rests FROM @ledger_papers AS x
	WHERE x.tenant = $1::text AND x.binder = $2::text AND x.binder <> '' FOR UPDATE SKIP LOCKED)
SELECT l.kind, l.id FROM l
WHERE (SELECT bool_and(l.rests) AND count(*) = (SELECT count(*) FROM @ledger_papers AS x
	WHERE x.tenant = $1::text AND x.binder = $2::text AND x.binder <> '') FROM l)
ORDER BY l.kind = $3::text AND l.id = $2::text, l.n
LIMIT $5::bigint
