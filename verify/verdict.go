// Package verify finds out what is true at a destination.
//
// [Send] sends once. [Look] reads once and judges what it found: [Diff]
// compares fields, [Judge] turns a comparison into a [Verdict]; both are pure.
// Nothing here decides what to do about a verdict, waits, or records: that is
// for policies, engine and ledger. A verdict speaks of what one read found; it
// does not know what lands later.
package verify

import (
	"fmt"
	"slices"
)

// Verdict is what the comparison of an intent with an observation says.
type Verdict uint8

// The verdicts. Only Verified passes on its own; the zero value proves
// nothing.
const (
	Indeterminate Verdict = iota // nothing below is proven
	Verified                     // the declared number of records, every expected field equal
	Absent                       // no record
	Mismatched                   // a record that differs from what was expected
	Duplicated                   // more records than declared
	Collateral                   // a field nobody asked to change has changed
	Vacuous                      // true before we wrote
	Stale                        // still as it was before we wrote
	Unavailable                  // the destination could not be read
)

var verdictNames = [...]string{
	Indeterminate: "indeterminate", Verified: "verified", Absent: "absent",
	Mismatched: "mismatched", Duplicated: "duplicated", Collateral: "collateral",
	Vacuous: "vacuous", Stale: "stale", Unavailable: "unavailable",
}

// Verdicts lists all verdicts, the zero value first.
func Verdicts() []Verdict {
	all := make([]Verdict, len(verdictNames))
	for i := range all {
		all[i] = Verdict(i)
	}
	return all
}

// String is the verdict's word; an unknown value reads as indeterminate.
func (v Verdict) String() string {
	if int(v) >= len(verdictNames) {
		return verdictNames[Indeterminate]
	}
	return verdictNames[v]
}

// MarshalText writes the verdict's word.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the verdict's word.
func (v *Verdict) UnmarshalText(text []byte) error {
	i := slices.Index(verdictNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("unknown verdict %q", text)
	}
	*v = Verdict(i)
	return nil
}

// ParseVerdict reads a verdict's word; what it does not know is
// indeterminate.
func ParseVerdict(word string) Verdict {
	var v Verdict
	_ = v.UnmarshalText([]byte(word)) // the zero value is the answer then
	return v
}
