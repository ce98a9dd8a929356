-- What nobody has sealed yet: the events of a write that one commit added, or a
-- mark, in no order that could be relied on: of two tickets the lower one may be
-- committed later. Nothing but the primary key, so that it costs one small row,
-- and none as long as chronicle is FALSE: with that a program of version 3 can
-- go on. Whoever switches it on sets compatible_from to 4.
CREATE TABLE IF NOT EXISTS @ledger_unsealed (
	ticket BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	write  BIGINT,                     -- n of the write, and its id
	id     TEXT   COLLATE "C",
	first  BIGINT NOT NULL DEFAULT 0,  -- 0: all that it had when sealing was switched on
	last   BIGINT NOT NULL DEFAULT 0,
	mark   TEXT
);

ALTER TABLE @ledger_meta ADD COLUMN IF NOT EXISTS chronicle BOOLEAN NOT NULL DEFAULT FALSE;
