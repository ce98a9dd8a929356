package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// Meter counts for OpenTelemetry. Create one with [NewMeter]. It is safe for
// concurrent use.
type Meter struct {
	words Words

	writes, sends, reads, replays, prevented, holds, failures metric.Int64Counter
	sendTime, readTime, writeTime, lag, toolTime              metric.Float64Histogram
	writeSends, writeReads                                    metric.Int64Histogram

	places sync.Map // options by spot
	mu     sync.Mutex
	tools  map[string]bool
}

var (
	_ engine.Meter       = (*Meter)(nil)
	_ engine.RepeatMeter = (*Meter)(nil)
	_ engine.EffectMeter = (*Meter)(nil)
	_ engine.CallMeter   = (*Meter)(nil)
)

// NewMeter makes a meter for the registered destinations. What happens at any
// other is counted as [Other]. docs/telemetry.md lists the names.
func NewMeter(mp metric.MeterProvider, known *connectors.Registry) *Meter {
	i := instruments{mp.Meter(Scope)}
	return &Meter{
		words: NewWords(known), tools: map[string]bool{},
		writes:     i.counter("readback.writes", "{write}", "Writes that were settled, by their outcome; that went to a person (review); or whose look is put off on purpose (unverified)."),
		sends:      i.counter("readback.sends", "{send}", "Sends, by what became of them."),
		reads:      i.counter("readback.reads", "{read}", "Reads of destinations after a send, by verdict."),
		replays:    i.counter("readback.replays", "{call}", "Calls that asked again for a write that somebody had asked for before, and got its outcome."),
		prevented:  i.counter("readback.duplicates.prevented", "{write}", "Second effects that did not come about: calls that were answered instead of sent again (replay), and sends of unknown fate whose effect a read found (read)."),
		holds:      i.counter("readback.holds", "{send}", "Sends that a guard did not let pass, by rule."),
		failures:   i.counter("readback.failures", "{failure}", "Failures of the ledger or of the work on a write, by cause."),
		sendTime:   i.seconds("readback.send.duration", "How long sends took.", callBounds),
		readTime:   i.seconds("readback.read.duration", "How long reads took.", callBounds),
		writeTime:  i.seconds("readback.write.duration", "From the reservation of a write to its end, on the ledger's clock; of status verified, the time to verified.", lifeBounds),
		lag:        i.seconds("readback.visibility.lag", "From a send that was answered to the read that first showed its effect.", lifeBounds),
		writeSends: i.pieces("readback.write.sends", "{send}", "Sends that a write took until it ended."),
		writeReads: i.pieces("readback.write.reads", "{read}", "Reads that a write took until it ended."),
		toolTime:   i.seconds("gen_ai.execute_tool.duration", "How long calls that asked for a write took until they were answered.", lifeBounds),
	}
}

// spot is where a write goes, and one thing more about it.
type spot struct {
	destination, kind string
	about             attribute.Key
	word              string
}

// place is where a write goes, with one thing more about it, as attributes. There
// are few places, and each is made once: to make them costs more than to count.
func (m *Meter) place(rec ledger.Record, about attribute.Key, word string) metric.MeasurementOption {
	destination, kind := m.words.Place(rec)
	at := spot{destination, kind, about, word}
	if made, ok := m.places.Load(at); ok {
		return made.(metric.MeasurementOption)
	}
	all := []attribute.KeyValue{keyDestination.String(destination), keyKind.String(kind)}
	if about != "" {
		all = append(all, about.String(word))
	}
	made, _ := m.places.LoadOrStore(at, with(all...))
	return made.(metric.MeasurementOption)
}

// Sent implements [engine.Meter].
func (m *Meter) Sent(rec ledger.Record, s engine.Sent) {
	ctx, at := context.Background(), m.place(rec, keyFate, Fate(s.Fate))
	m.sends.Add(ctx, 1, at)
	m.sendTime.Record(ctx, s.Took.Seconds(), at)
}

// Looked implements [engine.Meter].
func (m *Meter) Looked(rec ledger.Record, v verify.Verdict, took time.Duration) {
	ctx, at := context.Background(), m.place(rec, keyVerdict, v.String())
	m.reads.Add(ctx, 1, at)
	m.readTime.Record(ctx, took.Seconds(), at)
}

// Ended implements [engine.Meter].
func (m *Meter) Ended(rec ledger.Record) {
	ctx, at := context.Background(), m.place(rec, keyStatus, Status(rec))
	m.writes.Add(ctx, 1, at)
	m.writeTime.Record(ctx, max(rec.Updated.Sub(rec.Created), 0).Seconds(), at)
	m.writeSends.Record(ctx, int64(rec.Sends), at)
	m.writeReads.Record(ctx, int64(rec.Reads), at)
}

// Held implements [engine.Meter].
func (m *Meter) Held(rec ledger.Record, h engine.Hold) {
	m.holds.Add(context.Background(), 1, m.place(rec, keyRule, Rule(h)))
}

// Failed implements [engine.Meter].
func (m *Meter) Failed(rec ledger.Record, err error) {
	m.failures.Add(context.Background(), 1, m.place(rec, keyCause, Cause(err)))
}

// Repeated implements [engine.RepeatMeter].
func (m *Meter) Repeated(rec ledger.Record) {
	ctx := context.Background()
	m.replays.Add(ctx, 1, m.place(rec, "", ""))
	m.prevented.Add(ctx, 1, m.place(rec, keyBy, "replay"))
}

// Shown implements [engine.EffectMeter].
func (m *Meter) Shown(rec ledger.Record, v verify.Verdict, after time.Duration) {
	ctx := context.Background()
	if rec.LastFate == ledger.FateAnswered {
		m.lag.Record(ctx, after.Seconds(), m.place(rec, "", ""))
	}
	if Prevented(rec, v) {
		m.prevented.Add(ctx, 1, m.place(rec, keyBy, "read"))
	}
}

// Prevented reports whether a first read that showed an effect saved the write
// from a second one: nobody knew what had become of its last send, and whoever had
// sent again would have doubled it.
func Prevented(rec ledger.Record, v verify.Verdict) bool {
	return rec.Sends > 0 && rec.LastFate == ledger.FateUnknown && v != verify.Duplicated && v != verify.Indeterminate
}

// Called implements [engine.CallMeter].
func (m *Meter) Called(rec ledger.Record, o engine.Outcome, err error, took time.Duration) {
	attributes := []attribute.KeyValue{keyOperation.String("execute_tool"), keyTool.String(m.tool(rec.Tool, o))}
	if wrong := engine.ErrorType(o, err); wrong != "" {
		attributes = append(attributes, keyError.String(wrong))
	}
	if err == nil {
		attributes = append(attributes, keyStatus.String(among(o.Status, statuses...)))
	}
	m.toolTime.Record(context.Background(), took.Seconds(), with(attributes...))
}

// tool is the name of a tool, one of the first that brought about a write.
func (m *Meter) tool(name string, o engine.Outcome) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.tools[name] {
		if o.ID == "" || len(m.tools) >= maxTools {
			return Other
		}
		m.tools[name] = true
	}
	return name
}
