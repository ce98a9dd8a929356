-- The next portion of writes is found, in the order of their ids.
WITH x AS MATERIALIZED (SELECT w.n, w.id, w.seq FROM @ledger_writes AS w WHERE w.id > $1::text ORDER BY w.id LIMIT $2::bigint),
r AS (INSERT INTO @ledger_unsealed (write, id, last) SELECT x.n, x.id, x.seq FROM x ORDER BY x.id)
UPDATE @ledger_meta SET found = CASE WHEN (SELECT count(*) FROM x) < $2::bigint THEN '~' ELSE (SELECT max(x.id) FROM x) END
