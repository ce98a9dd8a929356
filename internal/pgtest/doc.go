// Package pgtest starts real PostgreSQL servers for tests, from the binaries
// that are installed: a fresh cluster in a temporary folder, on 127.0.0.1 alone,
// with fsync as in production, and streaming standbys of it that can lag, be
// paused and be promoted. As root it runs them as another user, since
// PostgreSQL refuses root.
//
// [Start] is for one test, [Open] for the tests of a package that share a
// server. Where PostgreSQL is not installed tests are skipped, or fail if
// READBACK_STRICT is 1.
//
// The package does not install PostgreSQL, choose a version beyond the newest
// there is, or know what is tested.
package pgtest
