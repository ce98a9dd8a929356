// Package readbacktest tests programs that write. It injects the faults of networks and
// destinations before any HTTP API or connector, kills a caller at chosen points and replays it,
// and counts the effects.
//
// A [Proxy] runs in the same process before an API: a handler of the test's own, or a remote
// server ([Forward]). It loses answers, applies writes late, answers with false success, delivers
// twice, and so on ([Kind]), by script or by seed:
//
//	proxy := readbacktest.NewProxy(t, bank, readbacktest.Options{
//		Script: []readbacktest.Fault{{Kind: readbacktest.LostAnswer, Nth: 1}},
//	})
//	pay(t.Context(), proxy.Client(), "INV-7721") // the code under test
//	readbacktest.Effects(t, bank.Charges, "INV-7721", proxy).Exactly(1)
//
// [Around] does the same before a [connectors.Connector]. [Replay] takes a whole loop, kills it
// at each of its points in turn, starts it again as an orchestrator would, and does so under each
// fault.
//
// Effects are counted where they happen, by what reached the target or by asking the destination,
// never by what a client believes. Everything follows from a seed; each failure reports how to
// repeat it.
//
// The package does not know what is written, and needs no engine and no ledger. It cannot
// distinguish a target that recognises a repeat from one that does not: where that matters, ask
// the destination ([Effects]). A kill ends a goroutine, whose deferred calls run: a killed
// process runs none.
package readbacktest
