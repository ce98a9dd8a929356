package sagamatrix

import (
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/saga"
)

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
	// hosted: the destinations are reached over a network and in real time, so
	// that nothing may take long.
	hosted bool
}

// indexLag is how far the search for tickets lags.
func (p plan) indexLag() time.Duration {
	if p.hosted {
		return 100 * time.Millisecond
	}
	return 5 * time.Second
}

var plans = []plan{
	{name: "welcome", says: "contact, ticket and order are made and can be undone; the mail decides, and is last"},
	{name: "sale", says: "a contact is changed and a ticket made, which can be undone; the order decides, and the mail must follow", sale: true},
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

// saga is the plan as it is begun.
func (p plan) saga(w world) saga.Plan {
	s := saga.Plan{Tenant: tenant, ID: sagaID}
	for _, name := range steps {
		s.Steps = append(s.Steps, saga.Step{Name: name, Intent: p.intent(w, name)})
	}
	return s
}
