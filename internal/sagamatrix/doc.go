// Package sagamatrix kills the process that runs a saga at every point of it, while one of its
// destinations refuses and one misbehaves, and reads the result from the destinations themselves.
//
// It has no code of its own, only tests. The four steps go to four destinations: a contact of a
// CRM, a ticket, an order, a mail. Each records what was done to it, and that record is the
// oracle. TestMatrix runs every cell on a ledger in memory, in fake time; TestKilled runs some
// with real processes that are killed, on a ledger on disk.
//
// The package does not know how a saga decides. The expected result of a cell is written down
// here a second time, derived from what was done to it.
package sagamatrix
