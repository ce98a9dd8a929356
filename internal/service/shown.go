package service

import (
	"cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// Shown is a record as it may be shown: sealed values are replaced by digests, so that
// equal values can still be recognized. The built request is left out: it is the
// destination's matter.
func Shown(r ledger.Record) ledger.Record {
	r.Prepared = nil
	r.Intent, r.ChildIntent = redact.Shown(r.Intent), redact.Shown(r.ChildIntent)
	r.Before, r.Evidence, r.Mismatches = redact.Shown(r.Before), redact.Shown(r.Evidence), redact.Shown(r.Mismatches)
	r.Ref, r.URL, r.Version = redact.ShownText(r.Ref), redact.ShownText(r.URL), redact.ShownText(r.Version)
	r.Reason, r.LastRefusal = redact.ShownText(r.Reason), redact.ShownText(r.LastRefusal)
	return r
}

// ShownAll is Shown of each; it is never nil.
func ShownAll(all []ledger.Record) []ledger.Record {
	out := make([]ledger.Record, len(all))
	for i, r := range all {
		out[i] = Shown(r)
	}
	return out
}

// ShownEvents are events as they may be shown; see [Shown].
func ShownEvents(all []ledger.Event) []ledger.Event {
	if len(all) == 0 {
		return all
	}
	out := make([]ledger.Event, len(all))
	for i, e := range all {
		e.Prepared = nil
		e.Evidence, e.Mismatches = redact.Shown(e.Evidence), redact.Shown(e.Mismatches)
		e.Ref, e.URL, e.Version = redact.ShownText(e.Ref), redact.ShownText(e.URL), redact.ShownText(e.Version)
		e.Reason, e.Code = redact.ShownText(e.Reason), redact.ShownText(e.Code)
		out[i] = e
	}
	return out
}

// Business is a write in the words of the people whose records it is about. Every text is one line
// in which every character is visible; values of callers are part of it.
type Business struct {
	// Summary is what the write is to do: "Create order A-1 for $29.99".
	Summary string `json:"summary" jsonschema:"what the write is to do, for people: Create order A-1 for $29.99"`
	// Amount, Subject and Customer are the values of the fields that the kind declares as such, ""
	// where there is none.
	Amount   string `json:"amount,omitempty" jsonschema:"the amount that it is about, with its currency, where its kind declares one"`
	Subject  string `json:"subject,omitempty" jsonschema:"its subject, where its kind declares one"`
	Customer string `json:"customer,omitempty" jsonschema:"its customer, where its kind declares one"`
}

// business describes a record as it may be shown, by the intent in it.
func business(r ledger.Record, w intent.WriteIntent, p *connectors.Profile) Business {
	if w.Write == "" { // its caller makes it, or nothing is left of it
		return Business{Summary: "Call " + visible.Clip(cmp.Or(r.Tool, r.Kind, string(r.ID)), maxCalled)}
	}
	if p == nil {
		p = &connectors.Profile{}
	}
	d := p.Summary.Write(w)
	return Business{Summary: d.String(), Amount: d.Amount, Subject: d.Subject, Customer: d.Customer}
}

// maxCalled is how many characters of a tool's name are shown.
const maxCalled = 80
