package report

import (
	"strings"
	"time"

	"github.com/readback-go/readback/ledger"
)

// Timeline is one event in the life of a write, for a reader.
type Timeline struct {
	Event ledger.Event
	// At is the time of the event, on the ledger's clock. An event that a worker recorded
	// late has the time at which it happened.
	At time.Time
	// Since is the time since the write was begun, with its unit.
	Since string
	// What is a sentence, before [Safe]. For an event that decided something it includes
	// what was known then.
	What string
	// Known is what was known at the time.
	Known Known
}

// Shown is the timeline of a write, in the order of its events.
func Shown(r ledger.Record, events []ledger.Event) []Timeline {
	all := make([]Timeline, 0, len(events))
	var known Known
	for _, e := range events {
		before := known
		known = known.after(e, r.Trace)
		what := happened(e, known.Sends)
		if decides(e, known) {
			if e.Kind == ledger.EvAnnounced {
				before.Verdict = known.Verdict
				what += ". Known: " + before.text()
			} else {
				what += ". Known: " + known.text()
			}
		}
		if e.Trace != "" && e.Trace != r.Trace {
			what += ". In trace " + TraceID(e.Trace)
		}
		at := e.At.Add(-e.Ago).UTC()
		all = append(all, Timeline{Event: e, At: at, Since: since(at.Sub(r.Created)), What: what, Known: known})
	}
	return all
}

// TraceID is the trace id of a W3C traceparent, as tracing systems search for it; "" for
// none.
func TraceID(traceparent string) string {
	if parts := strings.Split(traceparent, "-"); len(parts) >= 2 {
		return Clip(parts[1], cell)
	}
	return Clip(traceparent, cell)
}
