package ledger

import "time"

// Blocking reports whether a recorded write can stop a reservation that names
// the same business operation, whichever that is: it names one, and is not known
// to have come to nothing. Drivers keep the answer in a row of its own, so that
// the look-up walks through no others. A write that is open blocks however old
// it is; a settled one while
// [Record.SettledAt] lies in the window: it can have been held, or its fate
// unknown, for long before that.
func (r Record) Blocking() bool {
	if r.IdempotencyKey == "" || r.Parent != "" || r.Yielded { // an undoing is another operation than what it undoes
		return false
	}
	switch r.Settlement {
	case NotApplied, Compensated, Denied, Expired:
		return false
	}
	return true
}

// StepOf is the workflow of an entrusted write, which stops none of the same
// workflow; "" for all others.
func (r Record) StepOf() string {
	if r.Entrusted {
		return r.Workflow
	}
	return ""
}

// Blocks reports whether a recorded write stops a reservation that names the
// same business operation: same tenant, tool and idempotency key, another
// structural key, settled inside the window or still open, and not known to have
// come to nothing. Of several that do, the reservation is told of the newest that
// is open, or else of the one that was settled last.
func Blocks(prior Record, res Reservation, now time.Time) bool {
	r := res.Record
	switch {
	case r.IdempotencyKey != prior.IdempotencyKey, r.Tenant != prior.Tenant, r.Tool != prior.Tool,
		r.StructuralKey == prior.StructuralKey:
		return false
	case !prior.Blocking(), r.Parent != "":
		return false
	case (r.Entrusted || prior.Entrusted) && r.Workflow == prior.Workflow: // a step, and what is written in it
		return false
	}
	// One that is still open can yet be done, however old.
	return prior.State != Settled || res.Window <= 0 || now.Sub(prior.SettledAt) <= res.Window
}
