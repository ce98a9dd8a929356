// Package soak holds tests of the engine, the SQLite ledger and a destination
// as processes of their own, some of which are killed. It ships nothing, and
// it does not know which of the kills came at a bad moment: that is the point.
package soak
