// Package soak holds tests of the engine, its ledgers and a destination
// as processes of their own, some of which are killed. It ships nothing, and
// it does not know which of the kills came at a bad moment: that is the point.
//
// [UnderFire] is for packages with another scheduler for the same work, too.
package soak
