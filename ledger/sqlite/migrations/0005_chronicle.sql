-- A program of version 4 can go on with the file as long as nobody seals it:
-- whoever switches that on sets compatible_from to 5.
ALTER TABLE ledger_meta ADD COLUMN chronicle INTEGER NOT NULL DEFAULT 0;  -- 1: what nobody has sealed yet is remembered
ALTER TABLE ledger_meta ADD COLUMN ticket    INTEGER NOT NULL DEFAULT 0;  -- the last that was given

-- What nobody has sealed yet: the events of a write that one commit added, or a
-- mark. No other index, and no ticket comes twice.
CREATE TABLE ledger_unsealed (
	ticket INTEGER PRIMARY KEY,
	write  INTEGER,           -- n of the write
	first  INTEGER NOT NULL,  -- 0: all that it had when sealing was switched on
	last   INTEGER NOT NULL,
	mark   TEXT
) STRICT;
