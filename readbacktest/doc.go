// Package readbacktest is for the tests of programs that write: it puts the
// vices of networks and destinations before any HTTP API or connector, kills a
// caller at chosen points and replays it, and counts the effects.
//
// A [Proxy] stands in the same process before an API: a handler of the test's
// own, or a server somewhere ([Forward]). It loses answers, lets writes land
// late, claims successes that are none, delivers twice, and so on ([Vice]), where
// a script says so or by seed:
//
//	proxy := readbacktest.NewProxy(t, bank, readbacktest.Options{
//		Script: []readbacktest.Fault{{Vice: readbacktest.LostAnswer, Nth: 1}},
//	})
//	pay(t.Context(), proxy.Client(), "INV-7721") // the code under test
//	readbacktest.Effects(t, bank.Charges, "INV-7721", proxy).Exactly(1)
//
// [Around] does the same before a [connectors.Connector]. [Replay] takes a
// whole loop, kills it at each of its points in turn, begins it again as an
// orchestrator would, and does so under each vice.
//
// Effects are counted where they happen, by what reached the target or by asking
// the world, never by what a client believes. Everything follows from a seed;
// what fails says how to repeat it.
//
// The package does not know what is written, and needs no engine and no ledger.
// It cannot tell a target that recognises a repeat from one that does not: where
// that matters, ask the world ([Effects]). A kill is an end of a goroutine, whose
// deferred calls run: a process that is killed runs none.
package readbacktest
