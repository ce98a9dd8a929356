// Package verify establishes what is true at a destination.
//
// [Send] sends once. [ReadOnce] reads once and judges the result: [Diff] compares fields,
// [Judge] turns a comparison into a [Verdict]; both are pure. The package decides nothing about
// a verdict, does not wait, and records nothing: that is for policies, engine and ledger. A
// verdict is about one read; it does not cover later arrivals.
package verify

import (
	"fmt"
	"slices"
)

// Verdict is the result of comparing an intent with an observation.
type Verdict uint8

// The verdicts. Only Verified passes on its own; the zero value proves nothing.
const (
	Indeterminate Verdict = iota // nothing below is proven
	Verified                     // the declared number of records, every expected field equal
	Absent                       // no record
	Mismatched                   // a record that differs from what was expected
	Duplicated                   // more records than declared
	Collateral                   // a field changed without being requested
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

// String returns the verdict's word; an unknown value reads as indeterminate.
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

// ParseVerdict parses a verdict's word; an unknown word is indeterminate.
func ParseVerdict(word string) Verdict {
	var v Verdict
	_ = v.UnmarshalText([]byte(word)) // on error the result is the zero value
	return v
}
