-- How far the ledger was gone over since what nobody has sealed is remembered:
-- the numbers of the last write and the last paper that were found, the largest
-- number there is for all. What lies beyond is found with all that it has then,
-- and leaves nothing before. A program of version 5 would leave something, so
-- whoever begins it sets compatible_from to 6.
ALTER TABLE ledger_meta ADD COLUMN found_writes INTEGER NOT NULL DEFAULT 9223372036854775807;
ALTER TABLE ledger_meta ADD COLUMN found_papers INTEGER NOT NULL DEFAULT 9223372036854775807;
