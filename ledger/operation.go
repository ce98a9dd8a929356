package ledger

import "time"

// Blocking reports whether a recorded write can stop some reservation that names the same
// business operation: it names one, and is not known to have failed. Drivers keep the answer in a
// column, so that the query reads no other rows. An open write blocks at any age; a settled one
// while [Record.SettledAt] is within the window, since it can have been held, or of unknown fate,
// for long before that.
func (r Record) Blocking() bool {
	if r.IdempotencyKey == "" || r.Parent != "" || r.Yielded { // a compensation is another operation than what it undoes
		return false
	}
	return r.Settlement.Group() != NotDone
}

// StepOf returns the workflow of a delegated write, which does not stop writes of the same
// workflow; "" for all others.
func (r Record) StepOf() string {
	if r.Delegated {
		return r.Workflow
	}
	return ""
}

// Blocks reports whether a recorded write stops a reservation that names the same business
// operation: same tenant, tool and idempotency key, another structural key, settled inside the
// window or still open, and not known to have failed. Of several, the refusal names the newest
// open one, or else the one that was settled last.
func Blocks(prior Record, res Reservation, now time.Time) bool {
	r := res.Record
	switch {
	case !sameOperation(prior, r.Tenant, r.Tool, r.IdempotencyKey), r.StructuralKey == prior.StructuralKey:
		return false
	case !prior.Blocking(), r.Parent != "":
		return false
	case (r.Delegated || prior.Delegated) && r.Workflow == prior.Workflow: // a step, and a write made within it
		return false
	}
	// An open write can still be done, at any age.
	return prior.State != Settled || res.Window <= 0 || now.Sub(prior.SettledAt) <= res.Window
}

// OperationLimit is the most writes that [Ledger.Operation] returns: no reviewer reads more
// attempts at one operation.
const OperationLimit = 100
