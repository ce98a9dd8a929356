package sagamatrix

import (
	"fmt"
	"maps"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// The steps, in their order. Each has a destination of its own, of the same
// name.
const (
	contact = "contact"
	ticket  = "ticket"
	order   = "order"
	letter  = "mail"
)

var steps = []string{contact, ticket, order, letter}

// place is one destination: how it is reached, its faults, and its own record of its effects.
type place interface {
	// reach is the destination as a registry wants it.
	reach() connectors.Destination
	// declare is the step's intent.
	declare() intent.WriteIntent
	// meet applies the fault to the next request that it concerns.
	meet(v faultKind) error
	// account is what is there now.
	account() account
	close() error
}

// account is a destination's own record.
type account struct {
	// Status is the status of the record relative to the saga.
	Status status
	// Live is how many records are there that the saga is about, Made how often
	// requests made one that was not there.
	Live, Made int
	// What is shown of it in failures.
	What string
}

// status is the status of a destination.
type status string

const (
	asBefore   status = "as before"
	asDeclared status = "as declared"
	otherwise  status = "neither as before nor as declared"
)

// twice reports whether the saga did something there that it should have done
// once.
func (a account) twice(v faultKind) bool {
	switch v {
	case duplicate: // the destination made the second by itself
		return a.Made > 1
	case rollback: // and took the first back
		return a.Live > 1
	}
	return a.Live > 1 || a.Made > 1 && a.Status != asBefore
}

// faultKind is one fault of a destination, in terms common to all four.
type faultKind string

// The faults. The first concern a write, the last the reads after it.
const (
	lostAnswer  faultKind = "answer lost after the commit"
	gateway     faultKind = "5xx after the commit"
	nonsense    faultKind = "the yes cannot be understood"
	conflict    faultKind = "409 after the commit"
	silence     faultKind = "committed and never answered"
	late        faultKind = "late commit, after the client has gone"
	dropped     faultKind = "dropped before the commit"
	cutShort    faultKind = "cut in the middle of the request"
	redirected  faultKind = "redirected elsewhere"
	phantom     faultKind = "phantom success"
	unreachable faultKind = "no connection"
	throttled   faultKind = "throttled"
	refused     faultKind = "refused once"
	noField     faultKind = "a field is silently not stored"
	otherForm   faultKind = "a field is stored in another form"
	duplicate   faultKind = "a second record appears"
	rollback    faultKind = "the record disappears"
	lagging     faultKind = "reads lag"
	unreadable  faultKind = "reads fail three times"
	hanging     faultKind = "a read hangs"
)

// faultKinds lists them in the order of the table.
var faultKinds = []faultKind{lostAnswer, gateway, nonsense, conflict, silence, late, dropped, cutShort, redirected, phantom, unreachable,
	throttled, refused, noField, otherForm, duplicate, rollback, lagging, unreadable, hanging}

// reading reports whether the fault concerns reads.
func (v faultKind) reading() bool { return v == lagging || v == unreadable || v == hanging }

// world is all destinations of one saga.
type world map[string]place

// opened makes a world; sale selects its plan.
func opened(p plan) (world, error) {
	w := world{}
	for name, open := range map[string]func(plan) (place, error){contact: newCRM, ticket: newTracker, order: newTill, letter: newPost} {
		var err error
		if w[name], err = open(p); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return w, nil
}

func (w world) close() error {
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if err := w[name].close(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// accounts are those of all destinations.
func (w world) accounts() map[string]account {
	all := map[string]account{}
	for name, p := range w {
		all[name] = p.account()
	}
	return all
}

// knows reports whether the destination of a step can misbehave so.
func knows(step string, v faultKind) bool {
	return slices.Contains(map[string][]faultKind{contact: ofCRM(), ticket: ofTracker(), order: ofTill(), letter: ofPost()}[step], v)
}

// unknown is the error of a destination without such a fault.
func unknown(v faultKind) error { return fmt.Errorf("this destination has no fault %q", v) }
