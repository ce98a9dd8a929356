// Package shards is one ledger over several: each tenant is in one partition, and a directory in one
// of them, the home, says in which.
//
// A [Ledger] routes each call to the partition of its tenant, and merges calls about all tenants.
// What has no tenant (notes: guards, sessions, lags) is in the home. The directory is cached for
// seconds. That is safe because each partition refuses tenants that it does not own, in the
// transaction of the change ([ledger.Partition]): the router then reads the directory again, and
// tries once more.
//
// A partition that cannot be reached affects its own tenants only. Without the home no tenant is
// placed and no note is read.
package shards
