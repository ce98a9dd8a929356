package ledger_test

import (
	"testing"

	"github.com/readback-go/readback/ledger"
)

func TestSameName(t *testing.T) {
	for name, c := range map[string]struct {
		a, b   string
		want   bool
		reason string
	}{
		"the same":           {"ann", "ann", true, "to the letter"},
		"another":            {"ann", "bob", false, "two names"},
		"longer":             {"ann", "anna", false, "two names"},
		"capitals":           {"Ann", "aNN", true, "letter case distinguishes no one"},
		"blanks around":      {" ann", "ann\t", true, "they cannot be seen"},
		"blanks between":     {"ann  lee", "Ann\u00a0Lee", true, "nor how many there are, or of which kind"},
		"put together":       {"J\u00f6rg", "jo\u0308rg", true, "two ways to write one letter"},
		"wide letters":       {"\uff21nn", "ann", true, "likewise"},
		"another letter":     {"jorg", "j\u00f6rg", false, "these are two letters"},
		"an address":         {"Ann@Example.org", "ann@example.org", true, "these are names, too"},
		"no name and blanks": {"", " \t", true, "a name that cannot be seen is none"},
		"no name":            {"", "ann", false, "an empty name equals no name"},
		"not to be written":  {"ann\x00", "Ann\x00 ", true, "whatever it is, it is the same"},
		"and distinguished":  {"ann\x00", "ann", false, "whatever it is, it is something else"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ledger.SameName(c.a, c.b); got != c.want || ledger.SameName(c.b, c.a) != c.want {
				t.Errorf("%q and %q: %t: %s", c.a, c.b, got, c.reason)
			}
			if got := ledger.AmongNames([]string{"eve", c.a}, c.b); got != c.want {
				t.Errorf("%q among eve and %q: %t: %s", c.b, c.a, got, c.reason)
			}
		})
	}
	if ledger.AmongNames(nil, "ann") {
		t.Error("ann is in an empty list")
	}
}
