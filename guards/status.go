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

// Standing is how all guards of a ledger stand, as `readback status` shows it.
// Names and reasons in it come from outside and are to be cleaned before they
// are shown.
type Standing struct {
	Now          time.Time // on the ledger's clock, as all times here
	Destinations []Destination
	Stops        []Stopped
}

// Destination is how the guards of one destination stand. What no worker ever
// noted is not there.
type Destination struct {
	Name string
	// Rate is that of the worker that wrote last; zero when there is none.
	Rate connectors.Rate
	// Pause is until when nothing is sent because the destination said not now,
	// Why what it answered; zero when nothing is paused.
	Pause    time.Time
	PauseWhy string
	Breaker  BreakerState
	// Limit is how many sends may be under way, 0 for unbounded; Slots is who
	// has how many of them.
	Limit int
	Slots []Holder
	// Damaged names its notes that cannot be read: "rate", "breaker", "slots".
	Damaged []string
}

// BreakerState is how a circuit breaker stands.
type BreakerState struct {
	State string    // "closed", "open", "half-open"
	Since time.Time // when it opened or closed; zero when it never opened
	Until time.Time // when one send is let through; zero when closed
	Why   string
	Login time.Time // since when the destination has refused our login; zero: it has not
	By    string    // the worker that opened or closed it
	Probe string    // the worker whose send is being tried, "" when none is
}

// InUse is how many slots are taken.
func (d Destination) InUse() int {
	n := 0
	for _, h := range d.Slots {
		n += h.Slots
	}
	return n
}

// Status reads how all guards stand. A note that cannot be read is named and
// spoils nothing else; the error is the ledger's.
func Status(ctx context.Context, notes ledger.Notes) (Standing, error) {
	all, now, err := notes.Notes(ctx, prefix)
	if err != nil {
		return Standing{}, fmt.Errorf("guards: %w", err)
	}
	s := Standing{Now: now, Stops: stopsOf(all)}
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

// read takes one note in.
func (d *Destination) read(what string, n ledger.Note, now time.Time) {
	var err error
	switch what {
	case "rate":
		var note rateNote
		if err = json.Unmarshal(n.Value, &note); err == nil {
			d.Name, d.Rate = note.Destination, connectors.Rate{Calls: note.Calls, Per: note.Per}
			if note.Pause.After(now) {
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
