// Package sagamatrix lets the process that carries a saga die at every point of
// it, while one of its destinations refuses and one misbehaves, and asks the
// destinations themselves what came of it.
//
// It has no code of its own, only tests. The four steps go to four
// destinations: a contact of a CRM, a ticket, an order, a mail. Each keeps its
// own account of what was done to it, and that account is the oracle.
// TestMatrix runs every cell on a ledger in memory, in fake time; TestKilled
// runs some with real processes that are killed, on a ledger on disk.
//
// The package does not know how a saga decides. What must come of a cell is
// written down here a second time, from what was done to it.
package sagamatrix
