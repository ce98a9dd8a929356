// Package postgres keeps a ledger in a PostgreSQL database, for many workers
// on many machines.
package postgres
