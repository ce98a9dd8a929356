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

-- Those of one tenant: behind a cursor, and within a time.
CREATE INDEX ledger_changes_tenant ON ledger_changes (tenant, n);
CREATE INDEX ledger_changes_time   ON ledger_changes (tenant, at);

-- What people find writes by, and what never changes about them: in a table of
-- its own, so that rows with evidence need neither be rewritten now nor opened
-- to be passed over. n is that of the write. Each index costs an insert with
-- each write, and nothing after that.
CREATE TABLE ledger_search (
	n               INTEGER PRIMARY KEY REFERENCES ledger_writes (n) ON DELETE CASCADE,
	tenant          TEXT NOT NULL,
	workflow        TEXT NOT NULL,
	correlation_id  TEXT NOT NULL,
	idempotency_key TEXT NOT NULL,
	key_digest      TEXT NOT NULL
) STRICT;

INSERT INTO ledger_search (n, tenant, workflow, correlation_id, idempotency_key, key_digest)
	SELECT w.n, w.tenant,
		coalesce(CASE WHEN json_valid(w.body) THEN w.body ->> '$.workflow' END, ''),
		coalesce(CASE WHEN json_valid(w.body) THEN w.body ->> '$.correlation_id' END, ''),
		w.idempotency_key, coalesce(w.key_digest, '')
	FROM ledger_writes AS w;

CREATE INDEX ledger_search_workflow    ON ledger_search (tenant, workflow);
CREATE INDEX ledger_search_correlation ON ledger_search (tenant, correlation_id)  WHERE correlation_id <> '';
CREATE INDEX ledger_search_operation   ON ledger_search (tenant, idempotency_key) WHERE idempotency_key <> '';
CREATE INDEX ledger_search_about       ON ledger_search (tenant, key_digest)      WHERE key_digest <> '';
