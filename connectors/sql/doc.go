// Package sql writes rows of a table and reads them back.
//
// A kind of record is a table ([Table]): its columns, the business key, and
// what in it tells our rows from others'. PostgreSQL is reached through pgx
// ([Options].DSN); any other database through database/sql ([Options].DB) with a
// [Dialect], which has the plain part: no bulk read, no merging of JSON, and
// strong reads, horizon and unique keys only as declared.
//
// # Writes
//
// A write is one statement in an explicit transaction. Until COMMIT is sent
// nothing can have been applied, whatever went wrong; from then on only the
// server's word for COMMIT, or its error for it, tells. A statement that changes
// another number of rows than declared is rolled back, and so is one that left
// the row under another key than was asked for (rounded, cut, altered by a
// trigger): nobody would find it again. A create under a unique
// key is INSERT … ON CONFLICT (key) DO NOTHING, which the server refuses where
// the key is not unique: a wrong declaration cannot make a second row. An update
// sets the columns it names; of an object in a JSON column it sets the members
// it names and leaves the others.
//
// On PostgreSQL each transaction bounds itself: statement_timeout and
// lock_timeout end the statement before the client gives up, deferred
// constraints are checked within it, and idle_in_transaction_session_timeout
// ends a transaction whose COMMIT is still on its way. From these the horizon is
// declared. A cancel request, which pgx sends when ctx ends, proves nothing.
//
// # Reads
//
// Reads have connections of their own ([Options].ReadDSN), in READ ONLY
// transactions, and may lead to a streaming standby. Before a read the primary
// is asked for the position of its log, after whatever was committed by then,
// by whomever; a standby of the same history that has replayed it shows all of
// that: the read is strong. Until then it is weak, and where a settle time is
// declared, which a paused standby would outlast, it is an error
// ([ErrBehind]). What cannot be related to the primary at all is weak.
//
// # Values
//
// Numbers are exact. A timestamp is RFC 3339 text, bytea and other bytes are
// Base64, a uuid is in its hyphened form, an array is an array, json and jsonb
// are what they hold. A NULL is null; a column is never missing, so an intent
// cannot ask for one to be absent, only for a member within a JSON column.
//
// What the package does not know: what triggers do to other tables, whether a
// database behind database/sql has real transactions, whether a failover loses
// what was acknowledged, and whether a primary that nobody has shut off was
// replaced by one it has not seen: fence old primaries. It makes no tables. It
// needs PostgreSQL 12 or later.
package sql
