-- The version of the oldest program that can still work on the file. A
-- migration which such a program can live with (a new table, an index, a
-- column that may stay empty) leaves it as it is, so that running workers go
-- on; any other sets it to its own number.
ALTER TABLE ledger_meta ADD COLUMN compatible_from INTEGER NOT NULL DEFAULT 2;

-- Writes about one record form a line. place is the order in it, NULL for a
-- write that is in none; behind is the write that must be done first. Rows of
-- version 1 are in no line, and those that were settled have no destination
-- and no settled_at: a file of millions is not rewritten for that.
ALTER TABLE ledger_writes ADD COLUMN destination TEXT NOT NULL DEFAULT '';
ALTER TABLE ledger_writes ADD COLUMN key_digest  TEXT;
ALTER TABLE ledger_writes ADD COLUMN place       INTEGER;
ALTER TABLE ledger_writes ADD COLUMN behind      TEXT;
ALTER TABLE ledger_writes ADD COLUMN settled_at  INTEGER;
ALTER TABLE ledger_writes ADD COLUMN tombstone   INTEGER NOT NULL DEFAULT 0;
-- Why the row cannot be read; NULL for all others. Claims pass over it until
-- somebody has mended the row and set this to NULL.
ALTER TABLE ledger_writes ADD COLUMN damaged     TEXT;

UPDATE ledger_writes SET destination = coalesce(CASE WHEN json_valid(body) THEN body ->> '$.destination' END, '')
	WHERE due IS NOT NULL OR state <> 'settled';

-- Each place is one write's, and each write has one behind it at most.
CREATE UNIQUE INDEX ledger_writes_line ON ledger_writes (key_digest, place) WHERE place IS NOT NULL;
CREATE UNIQUE INDEX ledger_writes_behind ON ledger_writes (behind) WHERE behind IS NOT NULL;

-- What is open or owes a recheck and holds no place, by the record it is about.
CREATE INDEX ledger_writes_beside ON ledger_writes (key_digest)
	WHERE place IS NULL AND key_digest IS NOT NULL AND (state <> 'settled' OR due IS NOT NULL);

-- Work, by whose turn it is. A claim jumps from one party to the next and looks
-- at the oldest due of each. The lease stands in the index so that rows in good
-- hands are passed over without being opened.
DROP INDEX ledger_writes_due;
CREATE INDEX ledger_writes_work ON ledger_writes (destination, tenant, state, due, lease_until)
	WHERE due IS NOT NULL AND damaged IS NULL;

-- What is open and has no due time, for surveys.
CREATE INDEX ledger_writes_waiting ON ledger_writes (destination, tenant, state)
	WHERE due IS NULL AND state <> 'settled';

CREATE INDEX ledger_writes_damaged ON ledger_writes (n) WHERE damaged IS NOT NULL;

-- What is settled and owes nothing, oldest first: to be buried, and the
-- tombstones to be forgotten.
CREATE INDEX ledger_writes_done ON ledger_writes (tombstone, coalesce(settled_at, created))
	WHERE state = 'settled' AND due IS NULL;

-- What was enqueued in transactions of its callers, in their order. refused
-- says why an entry can never be taken in.
CREATE TABLE ledger_outbox (
	n          INTEGER PRIMARY KEY AUTOINCREMENT,
	id         TEXT    NOT NULL,
	tenant     TEXT    NOT NULL,
	key_digest TEXT    NOT NULL,
	intent     TEXT    NOT NULL,
	enqueued   INTEGER NOT NULL,  -- ns since 1970, UTC
	refused    TEXT
) STRICT;
CREATE INDEX ledger_outbox_id ON ledger_outbox (id, n);
CREATE INDEX ledger_outbox_line ON ledger_outbox (key_digest, n) WHERE refused IS NULL;
CREATE INDEX ledger_outbox_open ON ledger_outbox (n) WHERE refused IS NULL;
CREATE INDEX ledger_outbox_refused ON ledger_outbox (n) WHERE refused IS NOT NULL;

-- What workers tell each other.
CREATE TABLE ledger_notes (
	name    TEXT    NOT NULL PRIMARY KEY,
	version INTEGER NOT NULL,
	value   BLOB    NOT NULL,
	at      INTEGER NOT NULL  -- ns since 1970, UTC
) STRICT;
