-- The name of the ledger among those that share the tenants of one directory. '': it is
-- no partition, and has all tenants.
ALTER TABLE @ledger_meta ADD COLUMN partition TEXT NOT NULL DEFAULT '';

-- The tenants of a partition. A partition refuses tenants that it does not own: those
-- without a row, and moved ones. epoch grows with each decision about the owner, so that
-- of two partitions that own a tenant, after a restored backup, one is behind. state:
-- active; draining: no new write, document or lease; moved: nothing changes any more.
CREATE TABLE @ledger_tenants (
	tenant TEXT   COLLATE "C" NOT NULL PRIMARY KEY CHECK (tenant <> ''),
	epoch  BIGINT NOT NULL,
	state  TEXT   NOT NULL CHECK (state IN ('active', 'draining', 'moved'))
);

-- Which partition has which tenant, in the one ledger that has the directory. target is
-- where a tenant is being moved, previous where its last move came from.
CREATE TABLE @ledger_directory (
	tenant    TEXT   COLLATE "C" NOT NULL PRIMARY KEY CHECK (tenant <> ''),
	partition TEXT   NOT NULL,
	epoch     BIGINT NOT NULL,
	state     TEXT   NOT NULL CHECK (state IN ('active', 'draining', 'moved')),
	target    TEXT   NOT NULL DEFAULT '',
	previous  TEXT   NOT NULL DEFAULT ''
);
