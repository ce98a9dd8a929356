-- A row that cannot be read is out of the way of claims until it is mended.
UPDATE @ledger_writes SET damaged = $2 WHERE id = $1
