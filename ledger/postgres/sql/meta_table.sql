-- The one row that every statement looks at. Its columns never change their
-- meaning, so that an older program can tell that the ledger has become newer
-- than itself.
CREATE TABLE IF NOT EXISTS @ledger_meta (
	one             INT    NOT NULL PRIMARY KEY CHECK (one = 1),
	version         INT    NOT NULL,  -- the number of the last migration
	compatible_from INT    NOT NULL,  -- the version of the oldest program that can still work
	newest          BIGINT NOT NULL   -- about the newest time given to an entry; ns since 1970, UTC
);

INSERT INTO @ledger_meta (one, version, compatible_from, newest) VALUES (1, 0, 0, 0) ON CONFLICT DO NOTHING;
