-- One row for each write. body is the record as JSON, without what has a
-- column of its own: the five that must come back byte for byte (intent,
-- before, evidence, mismatches, child_intent) and the lease (owner,
-- lease_until, lease_for, fence), so that a claim need not open the body. What
-- is searched stands in columns as well; a row whose columns say something
-- else than its body is corrupt. Times are ns since 1970, UTC.
--
-- The id follows from the structural key, so one unique index serves both.
-- Whoever changes a row in a way that its seq does not show raises its fence.
CREATE TABLE @ledger_writes (
	n               BIGINT  GENERATED ALWAYS AS IDENTITY,  -- order of creation
	id              TEXT    COLLATE "C" NOT NULL PRIMARY KEY CHECK (id = 'wr_' || substr(structural_key, 1, 32)),
	tenant          TEXT    COLLATE "C" NOT NULL CHECK (tenant <> ''),
	destination     TEXT    COLLATE "C" NOT NULL,
	tool            TEXT    COLLATE "C" NOT NULL,
	structural_key  TEXT    COLLATE "C" NOT NULL,
	idempotency_key TEXT    COLLATE "C" NOT NULL,
	about           TEXT    COLLATE "C",               -- the key digest; NULL for a compensating write
	created         BIGINT  NOT NULL,
	intent          BYTEA,                             -- NULL for a tombstone

	state           TEXT    COLLATE "C" NOT NULL,
	due             BIGINT,                            -- NULL: not before something happens
	settled_at      BIGINT,
	key_digest      TEXT    COLLATE "C",               -- about, while the write is in line; else NULL
	behind          TEXT    COLLATE "C",               -- the write of its line that must be done first
	seq             BIGINT  NOT NULL,
	tombstone       BOOLEAN NOT NULL DEFAULT FALSE,
	body            TEXT    NOT NULL,
	before          BYTEA,
	evidence        BYTEA,
	mismatches      BYTEA,
	child_intent    BYTEA,

	owner           TEXT    NOT NULL,
	lease_until     BIGINT  NOT NULL,                  -- 0: nobody holds it
	lease_for       BIGINT  NOT NULL,
	fence           BIGINT  NOT NULL,

	-- What no record has. Of the writes of one business operation one at most
	-- holds it, so that two cannot begin it at once. followed: another write
	-- may stand behind this one. damaged: why the row cannot be read; claims
	-- pass over it until somebody has mended it and set this to NULL.
	holds           BOOLEAN NOT NULL,
	followed        BOOLEAN NOT NULL DEFAULT FALSE,
	damaged         TEXT
);

-- Work, by whose turn it is. A claim jumps from one party to the next and looks
-- at the oldest due of each. The lease stands in the index so that rows in good
-- hands are passed over without being opened.
CREATE INDEX ledger_writes_work ON @ledger_writes (destination, tenant, state, due, lease_until)
	WHERE due IS NOT NULL AND damaged IS NULL;

-- Has this business operation been begun by another write, and who holds it?
CREATE INDEX ledger_writes_operation ON @ledger_writes (tenant, tool, idempotency_key, created)
	WHERE idempotency_key <> '';
CREATE UNIQUE INDEX ledger_writes_holder ON @ledger_writes (tenant, tool, idempotency_key) WHERE holds;

-- Each line has one head and one tail, and each write one behind it at most.
CREATE UNIQUE INDEX ledger_writes_head ON @ledger_writes (key_digest) WHERE key_digest IS NOT NULL AND behind IS NULL;
CREATE UNIQUE INDEX ledger_writes_tail ON @ledger_writes (key_digest) WHERE key_digest IS NOT NULL AND NOT followed;
CREATE UNIQUE INDEX ledger_writes_behind ON @ledger_writes (behind) WHERE behind IS NOT NULL;

-- Listings of one tenant, newest first. Each state is walked by itself and the
-- walks are merged, so no listing sorts more than a page.
CREATE INDEX ledger_writes_listing ON @ledger_writes (tenant, state, n);

-- What is open or owes a recheck: by the record it is about, and for surveys.
CREATE INDEX ledger_writes_open ON @ledger_writes (about) WHERE state <> 'settled' OR due IS NOT NULL;

CREATE INDEX ledger_writes_damaged ON @ledger_writes (n) WHERE damaged IS NOT NULL;

-- What is settled and owes nothing, oldest first: to be buried, and the
-- tombstones to be forgotten.
CREATE INDEX ledger_writes_done ON @ledger_writes (tombstone, settled_at) WHERE state = 'settled' AND due IS NULL;

-- No foreign key: its check would lock the write a second time for each event.
-- Whoever deletes a write deletes its events in the same transaction.
CREATE TABLE @ledger_events (
	write      BIGINT NOT NULL,  -- n of the write
	seq        BIGINT NOT NULL,
	body       TEXT   NOT NULL,
	evidence   BYTEA,
	mismatches BYTEA,
	PRIMARY KEY (write, seq)
);

-- What was enqueued in transactions of its callers, in their order. refused
-- says why an entry can never be taken in.
CREATE TABLE @ledger_outbox (
	n          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id         TEXT   COLLATE "C" NOT NULL,
	tenant     TEXT   COLLATE "C" NOT NULL,
	key_digest TEXT   COLLATE "C" NOT NULL,
	intent     TEXT   NOT NULL,
	enqueued   BIGINT NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000,
	refused    TEXT
);
CREATE INDEX ledger_outbox_id ON @ledger_outbox (id, n);
CREATE INDEX ledger_outbox_line ON @ledger_outbox (key_digest, n) WHERE refused IS NULL;
CREATE INDEX ledger_outbox_open ON @ledger_outbox (n) WHERE refused IS NULL;
CREATE INDEX ledger_outbox_refused ON @ledger_outbox (n) WHERE refused IS NOT NULL;

-- What workers tell each other.
CREATE TABLE @ledger_notes (
	name    TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
	version BIGINT NOT NULL,
	value   BYTEA  NOT NULL,
	at      BIGINT NOT NULL
);
