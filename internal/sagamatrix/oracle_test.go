package sagamatrix

import (
	"context"
	"slices"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// The flaws that the matrix counts beside the ends. All must be 0.
const (
	doneTwice  = "done twice"
	mailEarly  = "the mail went before the rest was there"
	overHalted = "a reviewer was needed, although a read could decide"
	unexpected = "another end than the cell calls for"
)

// judge compares the reported saga with the destinations.
func (r *run) judge() {
	for _, name := range steps {
		if a := r.accounts[name]; a.twice(r.faultAt(name)) {
			r.flaw("%s: %s: %+v", doneTwice, name, a)
		}
	}
	r.end = r.ended()
	want := r.wants()
	switch {
	case r.end == half || r.end == wrong || r.end == doing:
		r.flaw("%s", r.end)
	case slices.Contains(want.may, r.end):
	case r.end == reviewerDecides:
		r.flaw("%s: %s: want %v", overHalted, r.final.Reason, want.may)
	default:
		r.flaw("%s: %s: want %v", unexpected, r.end, want.may)
	}
}

// wants is what may come of the run.
func (r *run) wants() want {
	w := r.cell.wants(r.point)
	if r.back { // from then on nothing may go forward
		w.may = []end{undone}
	}
	if w.why == "" && slices.Contains(w.may, undone) && slices.ContainsFunc(r.writes, r.unproven) {
		return want{append(w.may, reviewerDecides), whyWhose}
	}
	return w
}

// unproven reports whether another actor may have made the known change of a write: the CRM's
// updates have no stamp, and no answer was recorded.
func (r *run) unproven(w ledger.Record) bool {
	return w.Step == contact && w.Parent == "" && r.cell.plan.sale && w.Sends > 0 && !w.Answered
}

// faultAt is the fault of the destination of a step.
func (r *run) faultAt(name string) faultKind {
	if name == r.cell.step && !r.cell.undoing {
		return r.cell.fault
	}
	return ""
}

// ended is the end of the saga by the destinations, and whether the reported one matches.
func (r *run) ended() end {
	all := func(s status) bool {
		for _, a := range r.accounts {
			if a.Status != s {
				return false
			}
		}
		return true
	}
	known := r.final.State == saga.Review || slices.ContainsFunc(r.writes, func(w ledger.Record) bool { return w.State == ledger.Review })
	switch {
	case known && r.pictured():
		return reviewerDecides
	case known:
		return wrong
	case !r.final.Over():
		return doing
	case r.final.State == saga.Done && all(asDeclared):
		return done
	case r.final.State == saga.Undone && all(asBefore):
		return undone
	case all(asDeclared), all(asBefore):
		return wrong
	}
	return half
}

// pictured reports whether the description of each step for reviewers is true: what it says is
// there is there, and what it says is not there is not.
func (r *run) pictured() bool {
	for _, s := range r.final.Steps {
		a := r.accounts[s.Name]
		inReview := slices.ContainsFunc(r.writes, func(w ledger.Record) bool { return w.Step == s.Name && w.State == ledger.Review })
		switch {
		case inReview: // the description says that it is unknown
		case s.Status == ledger.Verified && a.Status != asDeclared,
			s.Status == ledger.Compensated && a.Status != asBefore,
			s.Status == ledger.NotApplied && a.Status != asBefore,
			s.Status == "" && a.Status != asBefore:
			return false
		}
	}
	return true
}

// mailGoes is called before the mail is sent to the server: then all else must be there.
func (r *run) mailGoes() {
	if r.cell.fault == rollback || r.cell.fault == duplicate {
		return // what was there is not there any more, by the destination's own doing
	}
	for _, name := range steps[:len(steps)-1] {
		if a := r.world[name].account(); a.Status != asDeclared {
			r.flaw("%s: %s is %s", mailEarly, name, a.Status)
		}
		if !r.verified(name) {
			r.flaw("%s: %s is not verified", mailEarly, name)
		}
	}
}

func (r *run) verified(step string) bool {
	all, err := r.book.List(context.Background(), ledger.Filter{Tenant: tenant})
	return err == nil && slices.ContainsFunc(all, func(w ledger.Record) bool {
		return w.Step == step && w.Parent == "" && w.State == ledger.Settled && w.Settlement == ledger.Verified
	})
}
