package office

import (
	"slices"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/workflow"
)

// Shown is a record as people may see it: digests stand in the place of what is
// sealed, so that equal values can still be told to be equal, and what was built to
// be sent is left out: it is the destination's matter.
func Shown(r ledger.Record) ledger.Record {
	r.Prepared = nil
	r.Intent, r.ChildIntent = redact.Shown(r.Intent), redact.Shown(r.ChildIntent)
	r.Before, r.Evidence, r.Mismatches = redact.Shown(r.Before), redact.Shown(r.Evidence), redact.Shown(r.Mismatches)
	r.Ref, r.URL, r.Version = redact.ShownText(r.Ref), redact.ShownText(r.URL), redact.ShownText(r.Version)
	r.Reason, r.LastRefusal = redact.ShownText(r.Reason), redact.ShownText(r.LastRefusal)
	return r
}

// ShownAll is Shown of each.
func ShownAll(all []ledger.Record) []ledger.Record {
	if len(all) == 0 {
		return all
	}
	out := make([]ledger.Record, len(all))
	for i, r := range all {
		out[i] = Shown(r)
	}
	return out
}

// ShownEvents are events as people may see them; see [Shown].
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

// ShownStep is what was decided about a step as people may see it; see [Shown]. The
// gate has taken out what is sensitive; what is left are reasons that it had from the
// ledger, in which it is sealed.
func ShownStep(t workflow.StepTrace) workflow.StepTrace {
	t.Reason = redact.ShownText(t.Reason)
	t.Decisions, t.Heard = slices.Clone(t.Decisions), slices.Clone(t.Heard)
	for i := range t.Decisions {
		d := &t.Decisions[i]
		d.Reason = redact.ShownText(d.Reason)
		if d.Known.Verification != nil {
			v := *d.Known.Verification
			v.Reason = redact.ShownText(v.Reason)
			d.Known.Verification = &v
		}
	}
	for i := range t.Heard {
		t.Heard[i].Reason = redact.ShownText(t.Heard[i].Reason)
	}
	return t
}

// ShownSteps are the steps of a workflow as people may see them; see [ShownStep].
func ShownSteps(l workflow.StepList) workflow.StepList {
	l.Reason, l.Steps = redact.ShownText(l.Reason), slices.Clone(l.Steps)
	for i, t := range l.Steps {
		l.Steps[i] = ShownStep(t)
	}
	return l
}
