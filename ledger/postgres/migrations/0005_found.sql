-- How far the ledger was gone over since what nobody has sealed is remembered: the
-- ids of the last write ('~', behind all of them, for all) and the name of the last
-- paper (NULL for all) that were found. What lies beyond is found with all that it
-- has then, and leaves nothing before. A program of version 4 would leave
-- something, so whoever begins it sets compatible_from to 5.
ALTER TABLE @ledger_meta
	ADD COLUMN IF NOT EXISTS found        TEXT COLLATE "C" NOT NULL DEFAULT '~',
	ADD COLUMN IF NOT EXISTS found_tenant TEXT COLLATE "C",
	ADD COLUMN IF NOT EXISTS found_kind   TEXT COLLATE "C",
	ADD COLUMN IF NOT EXISTS found_paper  TEXT COLLATE "C";
