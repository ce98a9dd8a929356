-- Writes that were lent and cannot be read: marked with the reason, or, when
-- that is empty, out of the way until a time. Nobody holds them.
UPDATE @ledger_writes AS w SET owner = '', lease_until = i.until, damaged = NULLIF(i.reason, '')
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[]) AS i (id, fence, reason, until)
WHERE w.id = i.id AND w.fence = i.fence
