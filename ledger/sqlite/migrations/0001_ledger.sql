-- The one row that every transaction reads first. Its two columns never change
-- their meaning, so that an older program can tell that the file has become
-- newer than itself.
CREATE TABLE ledger_meta (
	one     INTEGER PRIMARY KEY CHECK (one = 1),
	version INTEGER NOT NULL,  -- the number of the last migration
	newest  INTEGER NOT NULL   -- the newest time given to an entry; ns since 1970, UTC
) STRICT;

INSERT INTO ledger_meta (one, version, newest) VALUES (1, 0, 0);

-- One row for each write. body is the record as JSON, without the five that
-- must come back byte for byte (intent, before, evidence, mismatches, child_intent). What is
-- searched stands in columns as well; a row whose columns say something else
-- than its body is corrupt.
--
-- The id follows from the structural key, so one unique index serves both.
CREATE TABLE ledger_writes (
	n               INTEGER PRIMARY KEY,  -- order of creation
	id              TEXT    NOT NULL UNIQUE CHECK (id = 'wr_' || substr(structural_key, 1, 32)),
	tenant          TEXT    NOT NULL CHECK (tenant <> ''),
	tool            TEXT    NOT NULL,
	structural_key  TEXT    NOT NULL,
	idempotency_key TEXT    NOT NULL,
	created         INTEGER NOT NULL,
	intent          TEXT    NOT NULL,

	state           TEXT    NOT NULL,
	due             INTEGER,               -- NULL: not before something happens
	lease_until     INTEGER NOT NULL,      -- 0: nobody holds it
	fence           INTEGER NOT NULL,
	seq             INTEGER NOT NULL,
	body            TEXT    NOT NULL,
	before          TEXT,
	evidence        TEXT,
	mismatches      TEXT,
	child_intent    TEXT
) STRICT;

-- Work, oldest due first. The lease stands in the index so that rows in good
-- hands are passed over without being opened.
CREATE INDEX ledger_writes_due ON ledger_writes (due, lease_until) WHERE due IS NOT NULL;

-- Has this business operation been begun by another write?
CREATE INDEX ledger_writes_operation ON ledger_writes (tenant, tool, idempotency_key, created)
	WHERE idempotency_key <> '';

-- Listings of one tenant, newest first. Each state is walked by itself and the
-- walks are merged, so no listing sorts more than a page.
CREATE INDEX ledger_writes_listing ON ledger_writes (tenant, state, n);

CREATE TABLE ledger_events (
	write      INTEGER NOT NULL REFERENCES ledger_writes (n) ON DELETE CASCADE,
	seq        INTEGER NOT NULL,
	body       TEXT    NOT NULL,
	evidence   TEXT,
	mismatches TEXT,
	PRIMARY KEY (write, seq)
) STRICT, WITHOUT ROWID;
