package guards

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
)

// InForce is the status of all guards of a ledger, as `readback status` shows it. Names and
// reasons in it come from outside: clean them before display.
type InForce struct {
	Now          time.Time // on the ledger's clock, as all times here
	Destinations []Destination
	Stops        []Stopped
}

// Destination is the status of one destination's guards, as far as a worker has recorded it.
type Destination struct {
	Name string
	// Rate is that of the worker that wrote last; zero if there is none.
	Rate connectors.Rate
	// Pause is until when sends or reads pause because the destination throttled one, Why its
	// answer; zero if nothing is paused.
	Pause    time.Time
	PauseWhy string
	Breaker  BreakerState
	// Limit is how many sends may be under way, 0 for unbounded; Slots are the workers that have
	// them.
	Limit int
	Slots []Holder
	// Damaged names its unreadable notes: "rate", "reads", "breaker", "slots".
	Damaged []string
}

// BreakerState is the status of a circuit breaker.
type BreakerState struct {
	State string    `json:"state" jsonschema:"closed, open or half-open"`
	Since time.Time `json:"since,omitzero"` // when it opened or closed; zero: it never opened
	Until time.Time `json:"until,omitzero" jsonschema:"when one send is let through"`
	Why   string    `json:"reason,omitempty" jsonschema:"for people"`
	Login time.Time `json:"login_refused_since,omitzero" jsonschema:"since when the destination has refused our login; its writes wait"`
	By    string    `json:"-"` // the worker that opened or closed it
	Probe string    `json:"-"` // the worker whose send is being tried, "" if none is
}

// InUse is how many slots are taken.
func (d Destination) InUse() int {
	n := 0
	for _, h := range d.Slots {
		n += h.Slots
	}
	return n
}

// Status reads the status of all guards. An unreadable note is named and does not affect the
// others; the error is the ledger's.
func Status(ctx context.Context, notes ledger.Documents) (InForce, error) {
	all, now, err := notes.Notes(ctx, prefix)
	if err != nil {
		return InForce{}, fmt.Errorf("guards: %w", err)
	}
	s := InForce{Now: now, Stops: stopsOf(all)}
	found := make(map[string]*Destination)
	for _, n := range all {
		what, part, ok := strings.Cut(strings.TrimPrefix(n.Name, prefix), "/")
		if !ok || what == "stop" {
			continue
		}
		d := found[part]
		if d == nil {
			d = &Destination{Breaker: BreakerState{State: "closed"}}
			found[part] = d
		}
		d.read(what, n, now)
	}
	for part, d := range found {
		if d.Name == "" { // all its notes are damaged
			d.Name, _ = url.QueryUnescape(strings.TrimSuffix(part, "/"))
		}
		s.Destinations = append(s.Destinations, *d)
	}
	slices.SortFunc(s.Destinations, func(a, b Destination) int { return cmp.Compare(a.Name, b.Name) })
	return s, nil
}

// read adds one note.
func (d *Destination) read(what string, n ledger.Note, now time.Time) {
	var err error
	switch what {
	case "rate", "reads":
		var note rateNote
		if err = json.Unmarshal(n.Value, &note); err == nil {
			d.Name = note.Destination
			if what == "rate" {
				d.Rate = connectors.Rate{Calls: note.Calls, Per: note.Per}
			}
			if note.Pause.After(now) && note.Pause.After(d.Pause) {
				d.Pause, d.PauseWhy = note.Pause, note.Why
			}
		}
	case "breaker":
		var note breakerNote
		if err = json.Unmarshal(n.Value, &note); err == nil {
			d.Name, d.Breaker = note.Destination, note.state(now)
		}
	case "slots":
		var note slotsNote
		if err = json.Unmarshal(n.Value, &note); err == nil {
			d.Name, d.Limit = note.Destination, note.Limit
			d.Slots = slices.DeleteFunc(note.Holders, func(h Holder) bool { return !h.Until.After(now) })
		}
	}
	if err != nil {
		d.Damaged = append(d.Damaged, what)
	}
}

func (n breakerNote) state(now time.Time) BreakerState {
	s := BreakerState{State: "open", Since: n.Since, Until: n.Until, Login: n.Login, Why: n.Why, By: n.By}
	switch {
	case n.Closed:
		s.State = "closed"
	case !n.Until.After(now):
		s.State = "half-open"
		if n.Probe != nil && n.Probe.Until.After(now) {
			s.Probe = n.Probe.Owner
		}
	}
	return s
}
