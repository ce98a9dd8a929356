-- The write is the last of its line again.
UPDATE @ledger_writes SET followed = FALSE WHERE id = $1
