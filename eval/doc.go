// Package eval checks afterwards that the world is as declared: it reads the
// destinations, never the ledger, and counts effects (tier 1); and it compares
// rates of a run with those of a baseline (tier 2).
//
// [Load] reads a file of checks, which says what was declared (the effects of a
// run one by one, or the writes of a workflow or of a time, from an export) and
// what is to be checked. [Run] reads the destinations through their connectors
// and gives a [Report]: text, JSON, JUnit XML. Exports and outcomes are taken for
// what was declared and claimed; what is true, the world alone says. Tier 2 takes
// the numbers that a run counted itself, and says so.
//
// Whatever cannot be told is not checked, and never passed: a destination that
// cannot be read, a read that may be older than the last send, a list that may
// lack something.
//
// It changes nothing, and sends nothing. It does not know what happened between
// two reads, effects outside of the scopes that it is given, or why a run did what
// it did. What a model says about a run is attached as opinion and never decides.
package eval
