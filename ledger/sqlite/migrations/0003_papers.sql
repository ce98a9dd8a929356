-- A program of version 2 would let a held write go after the time for its
-- approval is over, or take such a one for work, and does not list what is
-- entrusted: it must not work on the file.
UPDATE ledger_meta SET compatible_from = 3;

-- 0: the write blocks no other of its business operation, 1: it may, NULL: it
-- may, for all that a program of version 2 knew. step_of is the workflow whose
-- own writes are not blocked by it, NULL for none.
ALTER TABLE ledger_writes ADD COLUMN blocks  INTEGER;
ALTER TABLE ledger_writes ADD COLUMN step_of TEXT;

-- Has this business operation been begun by another write? Only those that can
-- block stand in the index: the open ones as if they had just been created,
-- since their window never ends.
DROP INDEX ledger_writes_operation;
CREATE INDEX ledger_writes_operation
	ON ledger_writes (tenant, tool, idempotency_key, iif(state = 'settled', coalesce(settled_at, created), 9223372036854775807), step_of)
	WHERE idempotency_key <> '' AND blocks IS NOT 0;

-- What stands above single writes. n is the order in which papers came.
CREATE TABLE ledger_papers (
	n       INTEGER PRIMARY KEY,
	tenant  TEXT    NOT NULL CHECK (tenant <> ''),
	kind    TEXT    NOT NULL,
	id      TEXT    NOT NULL,
	binder  TEXT    NOT NULL,  -- '': none, as below
	subject TEXT    NOT NULL,
	trace   TEXT    NOT NULL,
	created INTEGER NOT NULL,  -- ns since 1970, UTC, as below
	state   TEXT    NOT NULL,
	due     INTEGER,           -- NULL: never
	done    INTEGER NOT NULL,
	version INTEGER NOT NULL,
	updated INTEGER NOT NULL,
	body    TEXT    NOT NULL,
	UNIQUE (tenant, kind, id)
) STRICT;

-- Listings of one kind, newest first, by what narrows them most; those of a
-- binder in the order in which they came.
CREATE INDEX ledger_papers_kind    ON ledger_papers (tenant, kind);
CREATE INDEX ledger_papers_state   ON ledger_papers (tenant, kind, state);
CREATE INDEX ledger_papers_binder  ON ledger_papers (tenant, binder, kind)  WHERE binder <> '';
CREATE INDEX ledger_papers_subject ON ledger_papers (tenant, kind, subject) WHERE subject <> '';
CREATE INDEX ledger_papers_trace   ON ledger_papers (tenant, kind, trace)   WHERE trace <> '';

-- What somebody is to look at, and what may be forgotten, oldest first.
CREATE INDEX ledger_papers_due  ON ledger_papers (kind, due) WHERE due IS NOT NULL;
CREATE INDEX ledger_papers_done ON ledger_papers (updated)   WHERE done AND due IS NULL;
