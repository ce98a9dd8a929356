package service

import (
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
