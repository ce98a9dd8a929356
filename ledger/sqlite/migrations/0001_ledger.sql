-- The one row that every transaction reads first. The first three columns never
-- change their meaning, so that an older program can tell that the file has become
-- newer than itself.
CREATE TABLE ledger_meta (
	one             INTEGER PRIMARY KEY CHECK (one = 1),
	version         INTEGER NOT NULL,  -- the number of the last migration
	-- The version of the oldest program that can still work on the file. A migration
	-- with which such a program can continue (a new table, an index, a column that may
	-- stay empty) leaves it unchanged; any other sets it to its own number.
	compatible_from INTEGER NOT NULL,
	newest          INTEGER NOT NULL,  -- the newest time given to an entry; ns since 1970, UTC
	sealing         INTEGER NOT NULL,  -- 1: a sealer has begun
	-- The time of the newest row of ledger_unsealed that was deleted before a sealer
	-- began, 0 for none: commits until then may have none.
	kept_since      INTEGER NOT NULL,
	ticket          INTEGER NOT NULL,  -- the last that was assigned in ledger_unsealed
	-- The key of the digests of business keys (see ledger.KeyDigests): 64 hex digits, or
	-- the id of the redaction key under which it is sealed, a colon, and the sealed key.
	digest_key      TEXT    NOT NULL
) STRICT;

INSERT INTO ledger_meta (one, version, compatible_from, newest, sealing, kept_since, ticket, digest_key)
	VALUES (1, 0, 1, 0, 0, 0, 0, '');

-- One row for each write. body is the record as JSON, without the five fields that
-- must be returned byte for byte (intent, before, evidence, mismatches, child_intent).
-- Searched fields have columns as well; a row whose columns contradict its body is
-- corrupt. Times are ns since 1970, UTC.
--
-- The id follows from the structural key, so one unique index serves both.
CREATE TABLE ledger_writes (
	n               INTEGER PRIMARY KEY,  -- order of creation
	id              TEXT    NOT NULL UNIQUE CHECK (id = 'wr_' || substr(structural_key, 1, 32)),
	tenant          TEXT    NOT NULL CHECK (tenant <> ''),
	destination     TEXT    NOT NULL,
	tool            TEXT    NOT NULL,
	structural_key  TEXT    NOT NULL,
	idempotency_key TEXT    NOT NULL,
	key_digest      TEXT,                  -- NULL for a compensating write
	step_of         TEXT,                  -- the workflow whose own writes this one does not block, or NULL
	created         INTEGER NOT NULL,

	state           TEXT    NOT NULL,
	due             INTEGER,               -- NULL: never by itself
	settled_at      INTEGER,
	lease_until     INTEGER NOT NULL,      -- 0: not leased
	fence           INTEGER NOT NULL,
	seq             INTEGER NOT NULL,
	place           INTEGER,               -- the position in the record queue; NULL for a write in none
	queued_behind   TEXT,                  -- the write of the queue that must be done first
	blocks          INTEGER NOT NULL,      -- 1: it may block other writes of its business operation
	tombstone       INTEGER NOT NULL DEFAULT 0,
	-- Why the row cannot be read, else NULL. Claims skip the row until an operator has
	-- repaired it and set this to NULL.
	damaged         TEXT,

	body            TEXT    NOT NULL,
	intent          TEXT    NOT NULL,      -- '' for a tombstone
	before          TEXT,
	evidence        TEXT,
	mismatches      TEXT,
	child_intent    TEXT,

	-- What the write has in common with others that wait for a reviewer (see ledger.WaitKind), or
	-- NULL for a write that waits for none.
	waits           TEXT
) STRICT;

-- Due work by party (destination, tenant, state). A claim jumps from one party to the
-- next and reads the oldest due writes of each. The index has the lease, so that leased
-- rows are skipped without being read.
CREATE INDEX ledger_writes_work ON ledger_writes (destination, tenant, state, due, lease_until)
	WHERE due IS NOT NULL AND damaged IS NULL;

-- Open writes without a due time, for the queue statistics.
CREATE INDEX ledger_writes_waiting ON ledger_writes (destination, tenant, state)
	WHERE due IS NULL AND state <> 'settled';

CREATE INDEX ledger_writes_damaged ON ledger_writes (n) WHERE damaged IS NOT NULL;

-- Each place of a record queue has one write, and each write has at most one behind it.
CREATE UNIQUE INDEX ledger_writes_queue ON ledger_writes (key_digest, place) WHERE place IS NOT NULL;
CREATE UNIQUE INDEX ledger_writes_queued_behind ON ledger_writes (queued_behind) WHERE queued_behind IS NOT NULL;

-- Writes outside the queue of their record that are open or have a pending recheck.
CREATE INDEX ledger_writes_unordered ON ledger_writes (key_digest)
	WHERE place IS NULL AND key_digest IS NOT NULL AND (state <> 'settled' OR due IS NOT NULL);

-- Writes that may block others of their business operation. The window of an open write
-- never ends, so the index has open writes as if they were created last.
CREATE INDEX ledger_writes_operation
	ON ledger_writes (tenant, idempotency_key, tool, iif(state = 'settled', settled_at, 9223372036854775807), step_of)
	WHERE idempotency_key <> '' AND blocks = 1;
CREATE INDEX ledger_writes_not_blocking ON ledger_writes (tenant, idempotency_key) WHERE idempotency_key <> '' AND blocks = 0;

-- Listings of one tenant, newest first. Each state is read by itself and the results are
-- merged, so no listing sorts more than a page.
CREATE INDEX ledger_writes_listing ON ledger_writes (tenant, state, n);

-- Writes that wait for a reviewer, for their counts and for lists of some groups of them.
CREATE INDEX ledger_writes_waits ON ledger_writes (tenant, waits, n, created) WHERE waits IS NOT NULL;

-- Key digests are random, and an index of them alone would have each write change a page
-- that no other write has changed for long. In lots of 256 writes they share the pages of
-- the last lot, and a search reads each lot.
CREATE INDEX ledger_writes_key_digest ON ledger_writes (n / 256, key_digest, tenant) WHERE key_digest IS NOT NULL;

-- Settled writes without a pending recheck, oldest first: those that may become
-- tombstones, by tenant and destination, each of which has its own retention, and the
-- tombstones.
CREATE INDEX ledger_writes_compactable ON ledger_writes (tenant, destination, settled_at)
	WHERE state = 'settled' AND due IS NULL AND tombstone = 0;
CREATE INDEX ledger_writes_tombstones ON ledger_writes (settled_at)
	WHERE state = 'settled' AND due IS NULL AND tombstone = 1;

CREATE TABLE ledger_events (
	write      INTEGER NOT NULL REFERENCES ledger_writes (n) ON DELETE CASCADE,
	seq        INTEGER NOT NULL,
	body       TEXT    NOT NULL,
	evidence   TEXT,
	mismatches TEXT,
	PRIMARY KEY (write, seq)
) STRICT, WITHOUT ROWID;

-- The terms by which writes are found and that never change. An index costs a page of the
-- log with each write, so there are few: one for all writes (workflow) and one for those
-- with a correlation id. Business operations are found by ledger_writes_operation and
-- ledger_writes_not_blocking.
CREATE TABLE ledger_search (
	tenant         TEXT    NOT NULL,
	workflow       TEXT    NOT NULL,
	n              INTEGER NOT NULL,  -- of the write, which is deleted together with this row
	correlation_id TEXT    NOT NULL,
	PRIMARY KEY (tenant, workflow, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_search_correlation ON ledger_search (tenant, correlation_id, n) WHERE correlation_id <> '';

-- The texts by which users find writes (see ledger.Terms): values of the business key,
-- ref, idempotency key and workflow. They are as random as key digests, so they are in
-- lots too: n / 4096. A tombstone has none.
CREATE TABLE ledger_terms (
	lot    INTEGER NOT NULL,
	tenant TEXT    NOT NULL,
	term   TEXT    NOT NULL,
	n      INTEGER NOT NULL,  -- of the write
	PRIMARY KEY (lot, tenant, term, n)
) STRICT, WITHOUT ROWID;

-- Intents that callers enqueued in their own transactions, in order. refused is the
-- reason why an entry can never be taken in. A digest without the ledger's key fails in
-- the caller's transaction: the entry could never be taken in.
CREATE TABLE ledger_outbox (
	n          INTEGER PRIMARY KEY AUTOINCREMENT,
	id         TEXT    NOT NULL,
	tenant     TEXT    NOT NULL,
	key_digest TEXT    NOT NULL CONSTRAINT ledger_outbox_keyed CHECK (substr(key_digest, 1, 12) = 'hmac:ledger:'),
	intent     TEXT    NOT NULL,
	enqueued   INTEGER NOT NULL,  -- ns since 1970, UTC
	refused    TEXT
) STRICT;
CREATE INDEX ledger_outbox_id ON ledger_outbox (id, n);
CREATE INDEX ledger_outbox_queue ON ledger_outbox (key_digest, n) WHERE refused IS NULL;
CREATE INDEX ledger_outbox_open ON ledger_outbox (n) WHERE refused IS NULL;
CREATE INDEX ledger_outbox_refused ON ledger_outbox (n) WHERE refused IS NOT NULL;

-- State that workers share.
CREATE TABLE ledger_notes (
	name    TEXT    NOT NULL PRIMARY KEY,
	version INTEGER NOT NULL,
	value   BLOB    NOT NULL,
	at      INTEGER NOT NULL  -- ns since 1970, UTC
) STRICT;

-- Documents above single writes. n is the order of their creation, '' in collection, subject
-- and trace means none. Times are ns since 1970, UTC.
CREATE TABLE ledger_documents (
	n          INTEGER PRIMARY KEY,
	tenant     TEXT    NOT NULL CHECK (tenant <> ''),
	kind       TEXT    NOT NULL,
	id         TEXT    NOT NULL,
	collection TEXT    NOT NULL,
	subject    TEXT    NOT NULL,
	trace      TEXT    NOT NULL,
	created    INTEGER NOT NULL,
	state      TEXT    NOT NULL,
	due        INTEGER,           -- NULL: never
	done       INTEGER NOT NULL,
	version    INTEGER NOT NULL,
	updated    INTEGER NOT NULL,
	body       TEXT    NOT NULL,
	UNIQUE (tenant, kind, id)
) STRICT;

-- Listings of one kind, newest first, by the most selective condition; those of a
-- collection oldest first.
CREATE INDEX ledger_documents_kind ON ledger_documents (tenant, kind);
CREATE INDEX ledger_documents_state ON ledger_documents (tenant, kind, state);
CREATE INDEX ledger_documents_collection ON ledger_documents (tenant, collection, kind) WHERE collection <> '';
CREATE INDEX ledger_documents_subject ON ledger_documents (tenant, kind, subject) WHERE subject <> '';
CREATE INDEX ledger_documents_trace ON ledger_documents (tenant, kind, trace) WHERE trace <> '';

-- Due documents, and those that may be deleted, oldest first.
CREATE INDEX ledger_documents_due ON ledger_documents (kind, due) WHERE due IS NOT NULL;
CREATE INDEX ledger_documents_done ON ledger_documents (updated) WHERE done AND due IS NULL;

-- The change feed, in the order of the changes. The last row is never deleted, so that
-- no number is used twice and none is left out.
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

-- What is not sealed yet: the events of a write that one commit added, or a mark. There
-- is no other index, and no ticket is used twice.
CREATE TABLE ledger_unsealed (
	ticket INTEGER PRIMARY KEY,
	at     INTEGER NOT NULL,  -- ns since 1970, UTC
	write  INTEGER,           -- n of the write
	first  INTEGER NOT NULL,
	last   INTEGER NOT NULL,
	mark   TEXT
) STRICT;
