// Package simulation runs several engines over one ledger in virtual time, with a destination
// that other actors use too, and checks every promise against the destination's own history.
//
// It has no code of its own, only tests. One seed is one run: which class of destination, which
// writes of one record, how long each call takes, which calls get a fault, when a process dies or
// stops, when the ledger's clock steps, and when another actor edits, copies, deletes, re-creates
// or re-keys the record or removes its stamp. The same seed gives the same run.
//
//	go test ./internal/simulation                                          # some thousand seeds
//	go test ./internal/simulation -run TestSeed -simulation.seed=7 -v      # one, with its trace
//	make simulate                                                          # 100,000, with a report
//
// The oracle knows the author of each change. It knows nothing of how the engine decides.
package simulation
