package telemetry

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// maxTools bounds the distinct tool names: names come from callers, and each is a series of its
// own for the lifetime of the process.
const maxTools = 200

// The histogram bounds, in seconds and counts.
var (
	// callBounds suit calls of APIs: from a service on the same machine to the longest usual
	// time-out.
	callBounds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	// lifeBounds suit a write from its begin to its end: one that waits for a rate limit or a
	// reviewer takes hours or days.
	lifeBounds = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300, 1800, 7200, 86400}
	// pieceBounds count sends and reads: near one in the normal case.
	pieceBounds = []float64{0, 1, 2, 3, 5, 8, 13, 21, 50}
)

// Meter records OpenTelemetry metrics. Create one with [NewMeter]. It is safe for concurrent use.
type Meter struct {
	words Words

	writes, sends, reads, replays, prevented, holds, failures metric.Int64Counter
	sendTime, readTime, writeTime, lag, toolTime              metric.Float64Histogram
	writeSends, writeReads                                    metric.Int64Histogram

	places sync.Map // options by spot
	mu     sync.Mutex
	tools  map[string]bool
}

// NewMeter returns a meter for the registered destinations. Any other destination is counted as
// other. docs/operate/observe.md lists the names.
func NewMeter(mp metric.MeterProvider, known *connectors.Registry) *Meter {
	i := instruments{mp.Meter(Scope)}
	return &Meter{
		words: NewWords(known), tools: map[string]bool{},
		writes:     i.counter("readback.writes", "{write}", "Writes that were settled, by outcome; that went to a reviewer (review); or whose read is postponed on purpose (unverified)."),
		sends:      i.counter("readback.sends", "{send}", "Sends, by what became of them."),
		reads:      i.counter("readback.reads", "{call}", "Calls that read destinations after a send, by verdict."),
		replays:    i.counter("readback.replays", "{call}", "Calls for a write that was requested before. They got its outcome."),
		prevented:  i.counter("readback.duplicates.prevented", "{write}", "Second effects that did not come about: calls that were answered instead of sent again (replay), and sends of unknown fate whose effect a read found (read)."),
		holds:      i.counter("readback.holds", "{send}", "Sends that a guard did not let pass, by rule."),
		failures:   i.counter("readback.failures", "{failure}", "Failures of the ledger or of the work on a write, by cause."),
		sendTime:   i.seconds("readback.send.duration", "How long sends took.", callBounds),
		readTime:   i.seconds("readback.read.duration", "How long reads took.", callBounds),
		writeTime:  i.seconds("readback.write.duration", "From the reservation of a write to its end, on the ledger's clock; of status verified, the time to verified.", lifeBounds),
		lag:        i.seconds("readback.visibility.lag", "From a send that was answered to the read that first showed its effect.", lifeBounds),
		writeSends: i.pieces("readback.write.sends", "{send}", "Sends that a write took until it ended."),
		writeReads: i.pieces("readback.write.reads", "{call}", "Calls that read the destination for a write, until it ended."),
		toolTime:   i.seconds("gen_ai.execute_tool.duration", "How long calls that asked for a write took until they were answered.", lifeBounds),
	}
}

// spot is a write's destination, and one more attribute.
type spot struct {
	destination, kind string
	about             attribute.Key
	word              string
}

// place is a write's destination, with one more attribute, as measurement options. There are few,
// and each is made once: making one costs more than counting.
func (m *Meter) place(rec ledger.Record, about attribute.Key, word string) metric.MeasurementOption {
	at := spot{rec.Destination, rec.Kind, about, word}
	if made, ok := m.places.Load(at); ok {
		return made.(metric.MeasurementOption)
	}
	at.destination, at.kind = m.words.Place(rec) // of registered ones the same
	all := []attribute.KeyValue{keyDestination.String(at.destination), keyKind.String(at.kind)}
	if about != "" {
		all = append(all, about.String(word))
	}
	made, _ := m.places.LoadOrStore(at, with(all...))
	return made.(metric.MeasurementOption)
}

// Observe counts what an engine did. It is for [engine.Options].Observer.
func (m *Meter) Observe(a engine.Activity) {
	ctx, rec := context.Background(), a.Record
	switch a.Kind {
	case engine.ActivityCalled:
		m.called(a)
	case engine.ActivityRepeated:
		m.replays.Add(ctx, 1, m.place(rec, "", ""))
		m.prevented.Add(ctx, 1, m.place(rec, keyBy, "replay"))
	case engine.ActivitySent:
		at := m.place(rec, keyFate, Fate(a.Sent.Fate))
		m.sends.Add(ctx, 1, at)
		m.sendTime.Record(ctx, a.Sent.Took.Seconds(), at)
	case engine.ActivityRead:
		at := m.place(rec, keyVerdict, a.Verdict.String())
		m.reads.Add(ctx, int64(a.Calls), at)
		m.readTime.Record(ctx, a.Took.Seconds(), at)
	case engine.ActivityShown:
		if rec.LastFate == ledger.FateAnswered {
			m.lag.Record(ctx, a.Took.Seconds(), m.place(rec, "", ""))
		}
		if Prevented(rec, a.Verdict) {
			m.prevented.Add(ctx, 1, m.place(rec, keyBy, "read"))
		}
	case engine.ActivityHeld:
		m.holds.Add(ctx, 1, m.place(rec, keyRule, Rule(a.Hold)))
	case engine.ActivityEnded:
		at := m.place(rec, keyStatus, Status(rec))
		m.writes.Add(ctx, 1, at)
		m.writeTime.Record(ctx, max(rec.Updated.Sub(rec.Created), 0).Seconds(), at)
		m.writeSends.Record(ctx, int64(rec.Sends), at)
		m.writeReads.Record(ctx, int64(rec.Reads), at)
	case engine.ActivityFailed:
		m.failures.Add(ctx, 1, m.place(rec, keyCause, Cause(a.Err)))
	}
}

// Prevented reports whether a first read that showed an effect prevented a duplicate: the result
// of the last send was unknown, and a second send would have duplicated it.
func Prevented(rec ledger.Record, v verify.Verdict) bool {
	return rec.Sends > 0 && rec.LastFate == ledger.FateUnknown && v != verify.Duplicated && v != verify.Indeterminate
}

func (m *Meter) called(a engine.Activity) {
	attributes := []attribute.KeyValue{keyOperation.String("execute_tool"), keyTool.String(m.tool(a.Record.Tool, a.Outcome))}
	if wrong := engine.ErrorType(a.Outcome, a.Err); wrong != "" {
		attributes = append(attributes, keyError.String(wrong))
	}
	if a.Err == nil {
		attributes = append(attributes, keyStatus.String(among(a.Outcome.Status, statuses...)))
	}
	m.toolTime.Record(context.Background(), a.Took.Seconds(), with(attributes...))
}

// tool returns the name of a tool that made a write. Beyond maxTools names it returns other.
func (m *Meter) tool(name string, o engine.Outcome) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.tools[name] {
		if o.ID == "" || len(m.tools) >= maxTools {
			return other
		}
		m.tools[name] = true
	}
	return name
}
