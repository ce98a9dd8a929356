-- name: unsealed
-- Returns nothing when sealing is off, although some rows may be left.
WITH {guard}
SELECT {state}, coalesce(u.ticket, 0), coalesce(u.write, 0), coalesce(u.id, ''), coalesce(u.first, 0), coalesce(u.last, 0), u.mark, {row}
FROM g LEFT JOIN (SELECT * FROM @ledger_unsealed AS x WHERE x.ticket > $1::bigint ORDER BY x.ticket LIMIT $2::bigint) AS u ON g.sealing
LEFT JOIN @ledger_writes AS w ON w.id = u.id
ORDER BY u.ticket

-- name: unsealed_events
-- The events of runs: of each write from one number to another.
SELECT i.ord, e.body, e.evidence, e.mismatches
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS i (write, first, last, ord)
JOIN @ledger_events AS e ON e.write = i.write AND e.seq BETWEEN i.first AND i.last
ORDER BY i.ord, e.seq

-- name: still_unsealed
-- Those that are still not sealed.
SELECT u.ticket FROM @ledger_unsealed AS u WHERE u.ticket = ANY ($1::bigint[])

-- name: unsealed_writes
-- The writes with unsealed events.
SELECT u.write FROM @ledger_unsealed AS u WHERE u.write IS NOT NULL
	AND (SELECT g.sealing FROM @ledger_meta AS g WHERE g.one = 1) LIMIT $1::bigint

-- name: delete_unsealed
DELETE FROM @ledger_unsealed WHERE ticket = ANY ($1::bigint[])

-- name: insert_marks
-- Records marks of changes that are no events, if sealing is on.
INSERT INTO @ledger_unsealed (mark)
SELECT m.mark FROM unnest($1::text[]) WITH ORDINALITY AS m (mark, ord)
WHERE (SELECT g.sealing FROM @ledger_meta AS g WHERE g.one = 1) ORDER BY m.ord

-- name: backfilled_to
-- The last write that is backfilled; '~' when sealing is off.
SELECT CASE WHEN g.sealing THEN g.backfilled_write ELSE '~' END FROM @ledger_meta AS g WHERE g.one = 1

-- name: sealing
-- Whether sealing is on, whether the backfill is complete, and whether unsealed rows
-- are left.
SELECT g.sealing, g.backfilled_write = '~' AND g.backfilled_tenant IS NULL, EXISTS (SELECT 1 FROM @ledger_unsealed) FROM @ledger_meta AS g WHERE g.one = 1

-- name: sealing_locked
-- Whether sealing is on, and how far the backfill has come, while no transaction can
-- change a write.
SELECT g.sealing, g.backfilled_write, g.backfilled_tenant IS NULL, coalesce(g.backfilled_tenant, ''), coalesce(g.backfilled_kind, ''), coalesce(g.backfilled_document, '')
FROM @ledger_meta AS g WHERE g.one = 1 FOR UPDATE

-- name: lock_unsealed
-- Every statement that adds an event or writes a document takes a lock of this table when
-- it begins, before it sees anything: a statement that comes after this one knows what it
-- has changed, and one that came before has committed all that the backfill must record.
LOCK TABLE @ledger_unsealed IN SHARE ROW EXCLUSIVE MODE

-- name: hold_unsealed
-- Sealing is not switched on before this transaction ends: what it finds unsealed, and
-- nothing more, is not to be deleted.
LOCK TABLE @ledger_unsealed IN ROW EXCLUSIVE MODE

-- name: sealing_on
UPDATE @ledger_meta SET sealing = TRUE, backfilled_write = '', backfilled_tenant = '', backfilled_kind = '', backfilled_document = ''

-- name: sealing_off
UPDATE @ledger_meta SET sealing = FALSE, backfilled_write = '~', backfilled_tenant = NULL, backfilled_kind = NULL, backfilled_document = NULL

-- name: backfill_writes
-- Backfills the next portion of writes, in the order of their ids.
WITH x AS MATERIALIZED (SELECT w.n, w.id, w.seq FROM @ledger_writes AS w WHERE w.id > $1::text ORDER BY w.id LIMIT $2::bigint),
r AS (INSERT INTO @ledger_unsealed (write, id, last) SELECT x.n, x.id, x.seq FROM x ORDER BY x.id)
UPDATE @ledger_meta SET backfilled_write = CASE WHEN (SELECT count(*) FROM x) < $2::bigint THEN '~' ELSE (SELECT max(x.id) FROM x) END

-- name: backfill_documents
-- Backfills the next portion of documents, in the order of their names.
WITH x AS MATERIALIZED (SELECT p.tenant, p.kind, p.id FROM @ledger_documents AS p
	WHERE (p.tenant, p.kind, p.id) > ($1::text, $2::text, $3::text) ORDER BY p.tenant, p.kind, p.id LIMIT $4::bigint),
r AS (INSERT INTO @ledger_unsealed (mark)
	SELECT json_build_object('kind', 'found', 'tenant', x.tenant, 'paper_kind', x.kind, 'paper_id', x.id)::text
	FROM x WHERE x.kind <> $5::text ORDER BY x.tenant, x.kind, x.id),
l AS (SELECT x.tenant, x.kind, x.id FROM x WHERE (SELECT count(*) FROM x) >= $4::bigint ORDER BY x.tenant DESC, x.kind DESC, x.id DESC LIMIT 1)
UPDATE @ledger_meta SET (backfilled_tenant, backfilled_kind, backfilled_document) = (SELECT l.tenant, l.kind, l.id FROM l)

-- name: clear_unsealed
DELETE FROM @ledger_unsealed AS u
WHERE u.ticket <= (SELECT max(x.ticket) FROM (SELECT f.ticket FROM @ledger_unsealed AS f ORDER BY f.ticket LIMIT $1::bigint) AS x)
