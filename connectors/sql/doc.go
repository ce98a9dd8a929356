// Package sql writes rows of a table and reads them back.
//
// A kind of record is a table ([Table]): its columns, the business key, and what distinguishes
// our rows from others. PostgreSQL is reached through pgx ([Options].DSN); any other database
// through database/sql ([Options].DB) with a [Dialect], which supports less: no bulk read, no
// merging of JSON, and strong reads, horizon and unique keys only as declared.
//
// # Writes
//
// A write is one statement in an explicit transaction. Until COMMIT is sent nothing can have been
// applied, whatever the error. After that only the server's answer to COMMIT, or its error,
// decides. A statement that changes another number of rows than declared is rolled back. So is
// one that stored the row under another key than requested (rounded, truncated, altered by a
// trigger): no read would find it again. A create under a unique key is INSERT … ON CONFLICT
// (key) DO NOTHING, which the server refuses where the key is not unique: a wrong declaration
// cannot make a second row. An update sets the columns it names; of an object in a JSON column it
// sets the members it names and leaves the others.
//
// On PostgreSQL each transaction limits itself: statement_timeout and lock_timeout end the
// statement before the client gives up, deferred constraints are checked within it, and
// idle_in_transaction_session_timeout ends a transaction whose COMMIT is still in transit. The
// declared horizon follows from these. A cancel request, which pgx sends when ctx ends, proves
// nothing.
//
// # Reads
//
// Reads have connections of their own ([Options].ReadDSN), in READ ONLY transactions, and may
// lead to a streaming standby. Before a read, the primary returns the position of its log, after
// everything that any actor committed by then. A standby of the same history that has replayed it
// shows all of that: the read is strong. Until then it is weak. Where a settle time is declared,
// which a paused standby would outlast, it is an error. What cannot be related to
// the primary at all is weak.
//
// # Values
//
// Numbers are exact. A timestamp is RFC 3339 text, bytea and other bytes are Base64, a uuid is in
// its hyphened form, an array is an array, json and jsonb are their content. A NULL is null; a
// column is never missing, so an intent cannot expect one to be absent, only a member within a
// JSON column.
//
// What the package does not know: what triggers do to other tables, whether a database used
// through database/sql has real transactions, whether a failover loses acknowledged writes, and
// whether another primary, which this package has not seen, replaced one that is still running:
// fence old primaries. It makes no tables. It needs PostgreSQL 12 or later.
package sql
