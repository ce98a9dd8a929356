-- One row for each write. body is the record as JSON, without what has columns of its
-- own: the five fields that must be returned byte for byte (intent, before, evidence,
-- mismatches, child_intent) and the lease (owner, lease_until, lease_for, fence), so that
-- a claim need not open the body. Searched fields have columns as well; a row whose
-- columns contradict its body is corrupt. Times are ns since 1970, UTC.
--
-- The id follows from the structural key, so one unique index serves both. A statement
-- that changes a row in a way that its seq does not show raises its fence.
CREATE TABLE @ledger_writes (
	n               BIGINT  GENERATED ALWAYS AS IDENTITY,  -- order of creation
	id              TEXT    COLLATE "C" NOT NULL PRIMARY KEY CHECK (id = 'wr_' || substr(structural_key, 1, 32)),
	tenant          TEXT    COLLATE "C" NOT NULL CHECK (tenant <> ''),
	destination     TEXT    COLLATE "C" NOT NULL,
	tool            TEXT    COLLATE "C" NOT NULL,
	structural_key  TEXT    COLLATE "C" NOT NULL,
	idempotency_key TEXT    COLLATE "C" NOT NULL,
	key_digest      TEXT    COLLATE "C",               -- NULL for a compensating write
	step_of         TEXT    COLLATE "C" NOT NULL DEFAULT '',  -- the workflow whose own writes this one does not block
	created         BIGINT  NOT NULL,
	intent          BYTEA,                             -- NULL for a tombstone

	state           TEXT    COLLATE "C" NOT NULL,
	due             BIGINT,                            -- NULL: never by itself
	settled_at      BIGINT,
	queue           TEXT    COLLATE "C",               -- the key digest while the write is in the record queue, else NULL
	queued_behind   TEXT    COLLATE "C",               -- the write of the queue that must be done first
	-- Since when a window must begin for the write not to block another one of its
	-- business operation: for an open write never (the largest number there is), for a
	-- settled one after it was settled. NULL: it blocks none.
	blocks          BIGINT,
	seq             BIGINT  NOT NULL,
	tombstone       BOOLEAN NOT NULL DEFAULT FALSE,
	body            TEXT    NOT NULL,
	before          BYTEA,
	evidence        BYTEA,
	mismatches      BYTEA,
	child_intent    BYTEA,

	owner           TEXT    NOT NULL,
	lease_until     BIGINT  NOT NULL,                  -- 0: not leased
	lease_for       BIGINT  NOT NULL,
	fence           BIGINT  NOT NULL,

	-- The rest is not in the record. holds: of the writes of one business operation at
	-- most one, the last one that may block, has this set, so that two cannot begin it at
	-- once. followed: another write may be queued behind this one. damaged: why the row
	-- cannot be read; claims skip it until an operator has repaired it and set this to
	-- NULL.
	holds           BOOLEAN NOT NULL,
	followed        BOOLEAN NOT NULL DEFAULT FALSE,
	damaged         TEXT,
	-- What the write has in common with others that wait for a reviewer (see ledger.WaitKind).
	-- NULL: it waits for none.
	waits           TEXT    COLLATE "C"
);

-- Due work by party (destination, tenant, state). A claim jumps from one party to the
-- next and reads the oldest due writes of each. The index has the lease, so that leased
-- rows are skipped without being read.
CREATE INDEX ledger_writes_work ON @ledger_writes (destination, tenant, state, due, lease_until)
	WHERE due IS NOT NULL AND damaged IS NULL;

CREATE INDEX ledger_writes_damaged ON @ledger_writes (n) WHERE damaged IS NOT NULL;

-- Each queue has one head and one tail, and each write has at most one behind it.
CREATE UNIQUE INDEX ledger_writes_head ON @ledger_writes (queue) WHERE queue IS NOT NULL AND queued_behind IS NULL;
CREATE UNIQUE INDEX ledger_writes_tail ON @ledger_writes (queue) WHERE queue IS NOT NULL AND NOT followed;
CREATE UNIQUE INDEX ledger_writes_queued_behind ON @ledger_writes (queued_behind) WHERE queued_behind IS NOT NULL;

-- Writes that are open or have a pending recheck, except the heads of queues, which have
-- an index already: a write that no other one meets is never in this one.
CREATE INDEX ledger_writes_open ON @ledger_writes (key_digest)
	WHERE (state <> 'settled' OR due IS NOT NULL) AND (queue IS NULL OR queued_behind IS NOT NULL);

-- Writes that may block others of their business operation: the one that holds it, and
-- those that released it, or whose key was erased. The key comes before the tool, so that
-- a search by the key reads them too, and then those that block none.
CREATE UNIQUE INDEX ledger_writes_holder ON @ledger_writes (tenant, idempotency_key, tool) WHERE holds;
CREATE INDEX ledger_writes_operation ON @ledger_writes (tenant, idempotency_key, tool, blocks) WHERE blocks IS NOT NULL AND NOT holds;
CREATE INDEX ledger_writes_not_blocking ON @ledger_writes (tenant, idempotency_key, n) WHERE blocks IS NULL AND idempotency_key <> '';

-- Listings of one tenant, newest first. Each state is read by itself and the results are
-- merged, so no listing sorts more than a page.
CREATE INDEX ledger_writes_listing ON @ledger_writes (tenant, state, n);

-- Writes that wait for a reviewer, for their counts and for lists of some groups of them.
CREATE INDEX ledger_writes_waits ON @ledger_writes (tenant, waits, n, created) WHERE waits IS NOT NULL;

-- Settled writes without a pending recheck, oldest first: those that may become
-- tombstones, by tenant and destination, each of which has its own retention, and the
-- tombstones. n is in them because a sweep continues after it: else it would sort all
-- that was settled at the same time.
CREATE INDEX ledger_writes_compactable ON @ledger_writes (tenant, destination, settled_at, n)
	WHERE state = 'settled' AND due IS NULL AND NOT tombstone;
CREATE INDEX ledger_writes_tombstones ON @ledger_writes (settled_at, n)
	WHERE state = 'settled' AND due IS NULL AND tombstone;

-- There is no foreign key: its check would lock the write a second time for each event.
-- A statement that deletes a write deletes its events in the same transaction.
CREATE TABLE @ledger_events (
	write      BIGINT NOT NULL,  -- n of the write
	seq        BIGINT NOT NULL,
	body       TEXT   NOT NULL,
	evidence   BYTEA,
	mismatches BYTEA,
	PRIMARY KEY (write, seq)
);

-- The terms by which writes are found and that never change: in a table of its own,
-- because each update of a write changes all indexes of its table. n and id are those of
-- the write.
CREATE TABLE @ledger_search (
	n              BIGINT NOT NULL,
	id             TEXT   COLLATE "C" NOT NULL,
	tenant         TEXT   COLLATE "C" NOT NULL,
	workflow       TEXT   COLLATE "C" NOT NULL,
	correlation_id TEXT   COLLATE "C" NOT NULL,
	key_digest     TEXT   COLLATE "C" NOT NULL,
	PRIMARY KEY (tenant, workflow, n)
);
CREATE INDEX ledger_search_correlation ON @ledger_search (tenant, correlation_id, n) WHERE correlation_id <> '';
CREATE INDEX ledger_search_key_digest ON @ledger_search (tenant, key_digest, n) WHERE key_digest <> '';

-- The texts by which users find writes (see ledger.Terms): values of the business key,
-- ref, idempotency key and workflow. lot is n / 4096, so that new terms share the last
-- pages of the index. A tombstone has none.
CREATE TABLE @ledger_terms (
	lot    BIGINT NOT NULL,
	tenant TEXT   COLLATE "C" NOT NULL,
	term   TEXT   COLLATE "C" NOT NULL,
	n      BIGINT NOT NULL,  -- of the write, and its id
	id     TEXT   COLLATE "C" NOT NULL,
	PRIMARY KEY (lot, tenant, term, n)
);

-- Intents that callers enqueued in their own transactions, in order. refused is the
-- reason why an entry can never be taken in. A digest without the ledger's key fails in
-- the caller's transaction: the entry could never be taken in.
CREATE TABLE @ledger_outbox (
	n          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id         TEXT   COLLATE "C" NOT NULL,
	tenant     TEXT   COLLATE "C" NOT NULL,
	key_digest TEXT   COLLATE "C" NOT NULL CONSTRAINT ledger_outbox_keyed CHECK (key_digest LIKE 'hmac:ledger:%'),
	intent     TEXT   NOT NULL,
	enqueued   BIGINT NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000,
	refused    TEXT
);
CREATE INDEX ledger_outbox_id ON @ledger_outbox (id, n);
CREATE INDEX ledger_outbox_queue ON @ledger_outbox (key_digest, n) WHERE refused IS NULL;
CREATE INDEX ledger_outbox_open ON @ledger_outbox (n) WHERE refused IS NULL;
CREATE INDEX ledger_outbox_refused ON @ledger_outbox (n) WHERE refused IS NOT NULL;

-- State that workers share.
CREATE TABLE @ledger_notes (
	name    TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
	version BIGINT NOT NULL,
	value   BYTEA  NOT NULL,
	at      BIGINT NOT NULL
);

-- Documents above single writes. '' in collection, subject and trace means none.
CREATE TABLE @ledger_documents (
	n          BIGINT  GENERATED BY DEFAULT AS IDENTITY,
	tenant     TEXT    COLLATE "C" NOT NULL,
	kind       TEXT    COLLATE "C" NOT NULL,
	id         TEXT    COLLATE "C" NOT NULL,
	collection TEXT    COLLATE "C" NOT NULL,
	subject    TEXT    COLLATE "C" NOT NULL,
	trace      TEXT    COLLATE "C" NOT NULL,
	state      TEXT    COLLATE "C" NOT NULL,
	due        BIGINT,                        -- NULL: never
	done       BOOLEAN NOT NULL,
	body       BYTEA   NOT NULL,              -- JSON, as it was given
	version    BIGINT  NOT NULL,
	created    BIGINT  NOT NULL,
	updated    BIGINT  NOT NULL,
	position   BIGINT  NOT NULL,              -- the order of creation: the time, and the position in its batch
	PRIMARY KEY (tenant, kind, id)
);
-- No other index begins as the primary key does, so that no read by name uses another
-- one.
CREATE INDEX ledger_documents_collection ON @ledger_documents (tenant, collection, kind, position, n) WHERE collection <> '';
CREATE INDEX ledger_documents_state ON @ledger_documents (state, tenant, kind, position, n);
CREATE INDEX ledger_documents_trace ON @ledger_documents (tenant, kind, trace, position, n) WHERE trace <> '';
CREATE INDEX ledger_documents_due ON @ledger_documents (kind, due, n) WHERE due IS NOT NULL;
CREATE INDEX ledger_documents_done ON @ledger_documents (updated, n) WHERE done AND due IS NULL;

-- Changes that have no place in the feed yet, from the transaction of their event on, in
-- no reliable order: of two numbers the lower one may be committed later. There is no
-- other index, so that each costs one small row.
CREATE TABLE @ledger_unpublished (
	n           BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at          BIGINT  NOT NULL,
	tenant      TEXT    COLLATE "C" NOT NULL,
	write       TEXT    COLLATE "C" NOT NULL,  -- the id
	seq         BIGINT  NOT NULL,
	kind        TEXT    NOT NULL,
	settlement  TEXT    NOT NULL,
	destination TEXT    NOT NULL,
	sends       BIGINT  NOT NULL,
	reads       BIGINT  NOT NULL,
	saved       BOOLEAN NOT NULL
);

-- The change feed. A follower moves changes here, under the lock of the one row of
-- ledger_published, and so gives them the next numbers: one order for all, without gaps, in
-- which no change is inserted before one that a follower may have read. The last row is
-- never deleted.
CREATE TABLE @ledger_changes (
	n           BIGINT  NOT NULL PRIMARY KEY,
	at          BIGINT  NOT NULL,
	tenant      TEXT    COLLATE "C" NOT NULL,
	write       TEXT    COLLATE "C" NOT NULL,
	seq         BIGINT  NOT NULL,
	kind        TEXT    NOT NULL,
	settlement  TEXT    NOT NULL,
	destination TEXT    NOT NULL,
	sends       BIGINT  NOT NULL,
	reads       BIGINT  NOT NULL,
	saved       BOOLEAN NOT NULL
);
CREATE INDEX ledger_changes_tenant ON @ledger_changes (tenant, n);
CREATE INDEX ledger_changes_time ON @ledger_changes (tenant, at);

CREATE TABLE @ledger_published (
	one  INT    NOT NULL PRIMARY KEY CHECK (one = 1),
	last BIGINT NOT NULL  -- the number of the last change
);
INSERT INTO @ledger_published (one, last) VALUES (1, 0);

-- What is not sealed yet: the events of a write that one commit added, or a mark, in no
-- reliable order: of two tickets the lower one may be committed later. There is no other
-- index, so that each costs one small row.
CREATE TABLE @ledger_unsealed (
	ticket BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at     BIGINT NOT NULL,
	write  BIGINT,                     -- n of the write, and its id
	id     TEXT   COLLATE "C",
	first  BIGINT NOT NULL DEFAULT 0,
	last   BIGINT NOT NULL DEFAULT 0,
	mark   TEXT
);
