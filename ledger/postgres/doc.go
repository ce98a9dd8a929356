// Package postgres keeps a ledger in a PostgreSQL database, for many workers on many machines. It
// needs version 12 or later and UTF8 encoding.
//
// [Open] returns a [Ledger] that any number of goroutines may use. Any number of processes may
// open the same database. The changes of a call are committed and on the database's disk when the
// call returns. A change is one statement and one round trip as long as a connection is free for
// it; under load, waiting changes share the next transaction. Nothing depends on the state of a
// connection, so a pooler in transaction mode may be used.
//
// # Documents
//
// A batch that changes at most one write is one statement too; any other is a transaction. Both
// lock the documents of a batch in the order of their names, unchanged ones against other batches
// that name them, then change writes, and create new documents last. So batches never deadlock,
// and nothing that a batch has checked changes before it is durable.
//
// # Changes
//
// A change is inserted by the statement of its event into a table without an order: identity
// values are taken in one order and committed in another, so a follower that had passed number 10
// would miss a 9 that is committed later. Followers move committed changes into the order of all
// changes, one follower at a time, under the lock of one row, and so assign the next number. The
// lock ends with the commit, so that numbers become visible in their order and without gaps. No
// other caller waits for it. It costs followers a short transaction when there is something new,
// and writers one small row.
//
// The alternative was to order by the numbers of transactions (xid8) and to cut off at the oldest
// running one. Then a transaction that runs for long, in any database of the server, or one that
// was prepared and forgotten, would block all followers, and a dump restored elsewhere would lose
// the order. With the present design a compatible database needs no xid8, and no numbers that
// grow in the order of commits: only row locks that are held until the changes made under them
// are visible.
//
// # Time
//
// The only clock is the database's. A claim decides and writes with the time of its statement. A
// reservation or an append is computed before it is sent, with the time that came with the
// database's last result plus the time elapsed since, a tenth of a second at most, and the way to
// a database that is far away. The statement applies it only if that time is at most 200 ms before,
// and never after, the database's clock at that moment. So the clocks of workers decide nothing, and a worker that is stopped on the way
// writes no old time. During the lifetime of a write time never runs backwards, even when the
// clock does.
//
// The newest time given to an entry is recorded, to within ten seconds, in one row that is rarely
// written (a row that each change wrote would serialise all workers). When the clock is more than
// a minute before it, Reserve and Claim fail with [ledger.ErrClock], also after a failover to a
// machine whose clock is late. Append still works, so that what was sent can be settled. A
// smaller step backwards is not detected: leases and waits then last that much longer. A jump
// forwards ends leases early, and fences keep the former holders from changing anything.
//
// # Other databases
//
// [Options].Dialect describes a database that speaks PostgreSQL's protocol and differs from it. Where
// SKIP LOCKED is missing or skips too much, a claim takes no locks: it reads candidates, and leases
// each if it still has the fence that was read. Where a commit may not know its own result, the
// ledger finds out: a change of one write is compared with the events that the write has, and each
// other transaction begins with a row that says that it was applied, unless a row of the same name
// that says the contrary is there first. So nothing is run again that may have been applied. Where
// each node has a clock, the time of a change is compared only with the clock from which it was
// read, and a lease has ended when it has on all clocks. Anything that fails with
// 40001 is tried again as a whole. Partial unique indexes, identity columns that count up over all
// sessions, and the UTF8 encoding are needed everywhere.
//
// # Trust
//
// Each result says whether the database is a standby and which programs may use the ledger, so
// that the next call of a running program detects a failover or an upgrade. The package cannot
// detect that a replaced primary is still running: the failover mechanism must prevent that. The
// package does not correct settings that weaken the whole server (fsync = off, a synchronous
// standby that is not waited for). Its own transactions raise a synchronous_commit of off, local
// or remote_write to on.
package postgres
