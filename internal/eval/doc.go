// Package eval checks afterwards that the world is as declared: it reads the destinations, never
// the ledger, and counts effects (tier 1); and it compares rates of a run with those of a
// baseline (tier 2).
//
// [Load] reads a file of checks, which names the declarations (the effects of a run one by one,
// or the writes of a workflow or of a time, from an export) and the checks. [Run] reads the
// destinations through their connectors and returns a [Report]: text, JSON, JUnit XML. Exports
// and outcomes only show what was declared and claimed; the world alone shows what is true. Tier
// 2 uses the numbers that a run counted itself, and says so.
//
// What cannot be decided is not checked, and never passed: a destination that cannot be read, a
// read that may be older than the last send, a list that may be incomplete.
//
// It changes nothing, and sends nothing. It does not know what happened between two reads,
// effects outside of the scopes that it is given, or why a run did what it did. A model's text
// about a run is attached as an opinion and never decides.
package eval
