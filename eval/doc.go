// Package eval checks afterwards that the world is as declared: it reads the
// destinations, never the ledger, and counts effects (tier 1); and it compares
// rates of a run with those of a baseline (tier 2).
//
// It changes nothing. What a model says about a run is attached as opinion and
// never decides.
package eval
