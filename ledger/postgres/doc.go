// Package postgres keeps a ledger in a PostgreSQL database, for many workers
// on many machines. It needs version 12 or later and an encoding of UTF8.
//
// [Open] gives a [Ledger] that may be used by any number of goroutines, and any
// number of processes may open the same database. What a call changed is
// committed and on the database's disk when the call returns. A change is one
// statement and one round trip as long as a connection is free for it; under
// load those that wait share the next transaction. Nothing depends on the state
// of a connection, so a pooler in transaction mode may stand between.
//
// # Papers
//
// A filing that changes one write at the most is one statement too; any other is
// a transaction. Both lock the papers of a filing in the order of their names,
// what is only to stay as it is for others that want the same, then change
// writes, and make new papers last. So filings never wait for each other in a
// circle, and nothing that a filing looked at changes before it is durable.
//
// # Changes
//
// What is told stands in the statement of its event, in a table without an order:
// identity values are taken in one order and committed in another, so that whoever
// had gone past number 10 would miss a 9 that is committed later. Whoever follows
// moves what is committed into the order of all changes, alone, under the lock of
// one row, and so gives it the next number; the lock ends with the commit, so that
// numbers become visible in their order and without gaps. Nobody else waits for
// it. It costs those who follow a short transaction when there is something new,
// and those who write one small row.
//
// The other way would have been to order by the numbers of transactions (xid8)
// and to cut off at the oldest one that runs. Then a transaction that runs for
// long, in any database of the server, or one that was prepared and forgotten,
// would hold up all who follow; and the order would be lost in a dump that is put
// back elsewhere. As it is, a compatible database needs no xid8, and no numbers
// that grow in the order of commits: only that a lock on a row is held until what
// was done under it can be seen.
//
// # Time
//
// The only clock is the database's. What a claim decides and writes is its time
// in that statement. A reservation or an append is computed before it is sent,
// with the time that the database gave beside its last answer, counted on for a
// tenth of a second at most; the statement applies it only if that lies at most
// 200 ms before, and never after, the database's clock as it then is. So the
// clocks of workers decide nothing, and a worker that is stopped on the way
// writes no old time. In the life of one write time never runs backwards, also
// when the clock does.
//
// The newest time given to an entry is on record, to within ten seconds, in one
// row that is hardly ever written (a row that each change wrote would be a queue
// of all workers). When the clock stands more than a minute before it, Reserve
// and Claim fail with [ledger.ErrClock], also after a failover to a machine
// whose clock is late; Append goes on, so that what was sent can be settled. A
// smaller step backwards is not seen: leases and waits then last that much
// longer. A jump forwards ends leases early, and fences keep the former holders
// from changing anything.
//
// # Trust
//
// Each answer says whether the database is a standby and which programs may use
// the ledger, so that a failover or an upgrade under a running program is seen
// by its next call. The package does not know whether a primary was replaced
// and lives on: that is for whatever makes the failover to prevent. It does not
// undo what weakens the server as a whole (fsync = off, a synchronous standby
// that is not waited for). Its own transactions raise a synchronous_commit of off,
// local or remote_write to on.
package postgres
