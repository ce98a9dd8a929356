-- What somebody outside wants to hear of stands here from the transaction of its
-- event on, in no order that could be relied on: of two numbers the lower one may
-- be committed later. Nothing but the primary key, so that it costs one small row.
CREATE TABLE @ledger_untold (
	n           BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at          BIGINT  NOT NULL,  -- ns since 1970, UTC
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

-- Whoever wants to follow moves it here, under the lock of the one row of
-- ledger_told, and so gives it the next number: one order for all, without gaps,
-- in which nothing comes to stand behind somebody's back. The last row is never
-- deleted.
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

CREATE TABLE @ledger_told (
	one  INT    NOT NULL PRIMARY KEY CHECK (one = 1),
	last BIGINT NOT NULL  -- the number of the last change
);
INSERT INTO @ledger_told (one, last) VALUES (1, 0);

-- What people find writes by, and what never changes about them: in a table of
-- its own, because every update of a write goes through all indexes of its table.
-- n and id are those of the write.
CREATE TABLE @ledger_search (
	n               BIGINT NOT NULL,
	id              TEXT   COLLATE "C" NOT NULL,
	tenant          TEXT   COLLATE "C" NOT NULL,
	workflow        TEXT   COLLATE "C" NOT NULL,
	correlation_id  TEXT   COLLATE "C" NOT NULL,
	idempotency_key TEXT   COLLATE "C" NOT NULL,
	key_digest      TEXT   COLLATE "C" NOT NULL
);

-- From here on changes are told, and a program that tells none would lose them.
-- So none may go on.
LOCK TABLE @ledger_writes IN ACCESS EXCLUSIVE MODE;
UPDATE @ledger_meta SET compatible_from = 3;

-- The words of a row that cannot be read are not known; the rest of it is.
CREATE FUNCTION @ledger_word(body TEXT, word TEXT) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
	RETURN coalesce(body::json ->> word, '');
EXCEPTION WHEN OTHERS THEN
	RETURN '';
END $$;
INSERT INTO @ledger_search (n, id, tenant, workflow, correlation_id, idempotency_key, key_digest)
	SELECT w.n, w.id, w.tenant, @ledger_word(w.body, 'workflow'), @ledger_word(w.body, 'correlation_id'),
		w.idempotency_key, coalesce(w.about, '')
	FROM @ledger_writes AS w;
DROP FUNCTION @ledger_word(TEXT, TEXT);

ALTER TABLE @ledger_search ADD PRIMARY KEY (tenant, workflow, n);
CREATE INDEX ledger_search_correlation ON @ledger_search (tenant, correlation_id, n) WHERE correlation_id <> '';
CREATE INDEX ledger_search_operation ON @ledger_search (tenant, idempotency_key, n) WHERE idempotency_key <> '';
CREATE INDEX ledger_search_about ON @ledger_search (tenant, key_digest, n) WHERE key_digest <> '';
