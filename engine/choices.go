package engine

import (
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
)

// Choice is one of the words that a person can say about a write now, and what
// saying it would do.
type Choice struct {
	Word Word `json:"word"`
	// Allowed says whether [Engine.Resolve] would take it from whoever asks; Why
	// is why not.
	Allowed bool   `json:"allowed"`
	Why     string `json:"why,omitempty"`
	// Effect is what it would do, Danger what could go wrong ("a second send could
	// duplicate, because …"), both sentences for a person. "" is no danger known.
	Effect string `json:"effect"`
	Danger string `json:"danger,omitempty"`
	// Force says that the word is only taken with [Decision.Force].
	Force bool `json:"force,omitempty"`
}

// ChoicesOf lists what can be decided about a write as it stands, none where it
// waits for nobody. The profile is nil where the destination is not known.
func ChoicesOf(r ledger.Record, p *connectors.Profile, who Principal) []Choice {
	return nil
}
