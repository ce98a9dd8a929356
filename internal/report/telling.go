package report

import (
	"strings"
	"time"

	"github.com/readback-go/readback/ledger"
)

// Telling is one event in the life of a write, told to a person.
type Telling struct {
	Event ledger.Event
	// At is when it happened, on the ledger's clock: what a worker learned before
	// it could write it down is told at the time at which it happened.
	At time.Time
	// Since is how long that was after the write was begun, with its unit.
	Since string
	// What is a sentence without what [Safe] writes out. Of what decided something
	// it says what was known then.
	What string
	// Known is what was known when it happened.
	Known Known
}

// Told is the life of a write in words, in the order of its events.
func Told(r ledger.Record, events []ledger.Event) []Telling {
	all := make([]Telling, 0, len(events))
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
		all = append(all, Telling{Event: e, At: at, Since: since(at.Sub(r.Created)), What: what, Known: known})
	}
	return all
}

// TraceID is the trace id of a W3C traceparent, as people look for it; "" for none.
func TraceID(traceparent string) string {
	if parts := strings.Split(traceparent, "-"); len(parts) >= 2 {
		return clip(parts[1], cell)
	}
	return clip(traceparent, cell)
}

// Moment is a time as it is written everywhere: UTC, to the millisecond.
func Moment(t time.Time) string { return moment(t) }

// Ago is a time as people say it, seen from now.
func Ago(t, now time.Time) string { return ago(t, now) }

// Wait is how long something takes, for a sentence.
func Wait(d time.Duration) string { return wait(d) }

// Clip is [Safe] text of at most n characters.
func Clip(s string, n int) string { return clip(s, n) }

// Calls counts the calls of a write in words.
func Calls(r ledger.Record) string { return calls(r) }

// Subject is what a write does, where, and to which record.
func Subject(r ledger.Record) string { return subject(r) }
