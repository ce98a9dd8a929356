-- name: ownership
-- The partition, and what it keeps of a tenant.
SELECT m.partition, coalesce(t.epoch, 0), coalesce(t.state, '')
FROM @ledger_meta AS m LEFT JOIN @ledger_tenants AS t ON t.tenant = $1::text WHERE m.one = 1

-- name: ownerships
SELECT t.tenant, t.epoch, t.state FROM @ledger_tenants AS t ORDER BY t.tenant

-- name: lock_ownership
SELECT t.tenant, t.epoch, t.state FROM @ledger_tenants AS t WHERE t.tenant = $1::text FOR UPDATE

-- name: insert_ownership
INSERT INTO @ledger_tenants (tenant, epoch, state) VALUES ($1::text, $2::bigint, $3::text) ON CONFLICT DO NOTHING

-- name: set_ownership
-- Changes what is kept of a tenant, if it is as expected.
UPDATE @ledger_tenants SET epoch = $2::bigint, state = $3::text WHERE tenant = $1::text AND epoch = $4::bigint AND state = $5::text

-- name: await_writers
-- Waits until no transaction that has changed one of these tables is open.
LOCK TABLE @ledger_writes, @ledger_documents, @ledger_outbox IN SHARE MODE

-- name: lock_partition
-- The name of the partition, its digest key, and whether it has anything.
SELECT m.partition, m.digest_key, EXISTS (SELECT 1 FROM @ledger_writes) OR EXISTS (SELECT 1 FROM @ledger_outbox)
FROM @ledger_meta AS m WHERE m.one = 1 FOR UPDATE

-- name: join_partition
UPDATE @ledger_meta SET partition = $1::text, digest_key = $2::text, compatible_from = greatest(compatible_from, $3::int) WHERE one = 1

-- name: own_present
-- A ledger that becomes a partition owns the tenants that it has.
INSERT INTO @ledger_tenants (tenant, epoch, state)
SELECT w.tenant, 1, 'active' FROM @ledger_writes AS w UNION SELECT x.tenant, 1, 'active' FROM @ledger_documents AS x UNION SELECT o.tenant, 1, 'active' FROM @ledger_outbox AS o
ON CONFLICT DO NOTHING

-- name: leased
-- How many writes of a tenant a worker has.
SELECT count(*) FROM @ledger_writes AS w CROSS JOIN (SELECT {clock} AS now) AS c WHERE w.tenant = $1::text AND w.lease_until > c.now

-- name: placements
SELECT d.tenant, d.partition, d.epoch, d.state, d.target, d.previous FROM @ledger_directory AS d ORDER BY d.tenant

-- name: placement
SELECT d.tenant, d.partition, d.epoch, d.state, d.target, d.previous FROM @ledger_directory AS d WHERE d.tenant = $1::text

-- name: insert_placement
INSERT INTO @ledger_directory (tenant, partition, epoch, state, target, previous) VALUES ($1::text, $2::text, $3::bigint, $4::text, $5::text, $6::text) ON CONFLICT DO NOTHING

-- name: set_placement
UPDATE @ledger_directory SET partition = $2::text, epoch = $3::bigint, state = $4::text, target = $5::text, previous = $6::text
WHERE tenant = $1::text AND epoch = $7::bigint AND state = $8::text AND target = $9::text
