package sagamatrix

import "github.com/readback-go/readback/intent"

const (
	tenant = "acme"
	sagaID = "saga-1"
)

// plan is one way in which the four steps hang together.
type plan struct {
	name, says string
	// sale: the order is the pivot, and the mail comes after it. Otherwise the
	// mail is the pivot, and all before it can be undone.
	sale bool
}

var plans = []plan{
	{"welcome", "contact, ticket and order are made and can be undone; the mail decides, and is last", false},
	{"sale", "a contact is changed and a ticket made, which can be undone; the order decides, and the mail must follow", true},
}

// intent is the intent of a step in this plan.
func (p plan) intent(w world, step string) intent.WriteIntent {
	in := w[step].declare()
	in.Destination = step
	switch {
	case step == letter && !p.sale, step == order && p.sale:
		in.Reversibility = intent.Pivot
	case step == letter:
		in.Reversibility = intent.Retryable
	default:
		in.Reversibility = intent.Compensable
	}
	if !p.sale && in.Reversibility == intent.Compensable {
		in.OnMismatch = intent.MismatchCompensate
	}
	return in
}
