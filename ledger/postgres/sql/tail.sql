-- The last write of a line, marked as followed. Another transaction that comes
-- to stand behind it waits here, and then finds that it is not the last.
UPDATE @ledger_writes AS w SET followed = TRUE
WHERE w.key_digest = $1 AND NOT w.followed
RETURNING {row}
