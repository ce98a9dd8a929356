-- A program of version 3 would change writes without telling those who follow,
-- and reserve some that no search finds: it must not work on the file.
UPDATE ledger_meta SET compatible_from = 4;

-- What somebody outside wants to hear of, in the order in which it happened.
-- The last row is never deleted, so that no number comes twice and none is left
-- out.
CREATE TABLE ledger_changes (
	n           INTEGER PRIMARY KEY,
	at          INTEGER NOT NULL,  -- ns since 1970, UTC
	tenant      TEXT    NOT NULL,
	write       TEXT    NOT NULL,  -- the id
	seq         INTEGER NOT NULL,
	kind        TEXT    NOT NULL,
	settlement  TEXT    NOT NULL,
	destination TEXT    NOT NULL,
	sends       INTEGER NOT NULL,
	reads       INTEGER NOT NULL,
	saved       INTEGER NOT NULL
) STRICT;

CREATE INDEX ledger_changes_tenant ON ledger_changes (tenant, n);

-- What people find writes by. An index costs a page of the log with each write, so
-- there are as few as can be: one that every write goes through (workflow), one for
-- those with a correlation id, and the one by which business operations are looked
-- up anyway, which begins with what a person knows from now on. Beside it stands
-- what can block no other, which is little.
CREATE TABLE ledger_workflows (
	tenant         TEXT    NOT NULL,
	workflow       TEXT    NOT NULL,
	n              INTEGER NOT NULL,  -- that of the write; who deletes that deletes this
	correlation_id TEXT    NOT NULL,
	PRIMARY KEY (tenant, workflow, n)
) STRICT, WITHOUT ROWID;

INSERT INTO ledger_workflows (tenant, workflow, n, correlation_id)
	SELECT w.tenant, coalesce(CASE WHEN json_valid(w.body) THEN w.body ->> '$.workflow' END, '') AS workflow, w.n,
		coalesce(CASE WHEN json_valid(w.body) THEN w.body ->> '$.correlation_id' END, '')
	FROM ledger_writes AS w
	ORDER BY w.tenant, workflow, w.n;

CREATE INDEX ledger_workflows_correlation ON ledger_workflows (tenant, correlation_id, n) WHERE correlation_id <> '';

-- Key digests lie anywhere, and an index of them alone would have each write touch
-- a page that no other one has touched for long. In lots of 256 writes they share
-- the pages of the last lot, and who searches asks each lot.
CREATE INDEX ledger_writes_about ON ledger_writes (n / 256, key_digest, tenant) WHERE key_digest IS NOT NULL;

DROP INDEX ledger_writes_operation;
CREATE INDEX ledger_writes_operation
	ON ledger_writes (tenant, idempotency_key, tool, iif(state = 'settled', coalesce(settled_at, created), 9223372036854775807), step_of)
	WHERE idempotency_key <> '' AND blocks IS NOT 0;
CREATE INDEX ledger_writes_nothing ON ledger_writes (tenant, idempotency_key) WHERE idempotency_key <> '' AND blocks = 0;
