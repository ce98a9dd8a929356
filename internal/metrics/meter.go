package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/telemetry"
	"github.com/readback-go/readback/verify"
)

// The results of a reload.
const taken, refused = "taken", "refused"

// Meter counts. Create one with [New]. It is safe for concurrent use.
type Meter struct {
	known    *connectors.Registry
	words    telemetry.Words
	registry *prometheus.Registry

	sends, reads, ended, held, failed, reloads, replays, prevented      *prometheus.CounterVec
	sendSeconds, readSeconds, life, readsNeeded, sendsNeeded, seenAfter *prometheus.HistogramVec
}

var (
	_ engine.Meter       = (*Meter)(nil)
	_ engine.RepeatMeter = (*Meter)(nil)
	_ engine.EffectMeter = (*Meter)(nil)
)

// New makes a meter for the registered destinations, on a registry of its own
// beside the numbers of the Go runtime and the process. What happens at any
// other destination is counted under "other".
func New(known *connectors.Registry, from Sources) *Meter {
	m := &Meter{
		known: known, words: telemetry.NewWords(known), registry: prometheus.NewRegistry(),
		sends: counter(sends), reads: counter(reads), ended: counter(ended), held: counter(held), failed: counter(failed), reloads: counter(reloads), replays: counter(replays), prevented: counter(prevented),
		sendSeconds: histogram(sendSeconds, callBuckets), readSeconds: histogram(readSeconds, callBuckets),
		life: histogram(lifeSeconds, lifeBuckets), readsNeeded: histogram(writeReads, readBuckets), sendsNeeded: histogram(writeSends, readBuckets), seenAfter: histogram(shownSeconds, lifeBuckets),
	}
	m.registry.MustRegister(
		m.sends, m.reads, m.ended, m.held, m.failed, m.reloads, m.replays, m.prevented, m.sendSeconds, m.readSeconds, m.life, m.readsNeeded, m.sendsNeeded, m.seenAfter,
		&collector{meter: m, from: from, now: time.Now},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, result := range []string{taken, refused} { // so that an alert sees the first
		m.reloads.WithLabelValues(result)
	}
	for _, p := range known.Profiles() {
		m.reads.WithLabelValues(p.Destination, p.Kind, verify.Duplicated.String())
		m.sends.WithLabelValues(p.Destination, p.Kind, telemetry.Fate(connectors.FateUnknown))
	}
	return m
}

func counter(m metric) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.name, Help: m.help}, m.labels)
}

func histogram(m metric, buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.name, Help: m.help, Buckets: buckets}, m.labels)
}

// Sent implements [engine.Meter].
func (m *Meter) Sent(rec ledger.Record, s engine.Sent) {
	destination, kind := m.words.Place(rec)
	m.sends.WithLabelValues(destination, kind, telemetry.Fate(s.Fate)).Inc()
	m.sendSeconds.WithLabelValues(destination, kind).Observe(s.Took.Seconds())
}

// Looked implements [engine.Meter].
func (m *Meter) Looked(rec ledger.Record, v verify.Verdict, took time.Duration) {
	destination, kind := m.words.Place(rec)
	m.reads.WithLabelValues(destination, kind, v.String()).Inc()
	m.readSeconds.WithLabelValues(destination, kind).Observe(took.Seconds())
}

// Ended implements [engine.Meter].
func (m *Meter) Ended(rec ledger.Record) {
	status := telemetry.Status(rec)
	destination, kind := m.words.Place(rec)
	m.ended.WithLabelValues(destination, kind, status).Inc()
	m.life.WithLabelValues(destination, kind, status).Observe(max(rec.Updated.Sub(rec.Created), 0).Seconds())
	m.sendsNeeded.WithLabelValues(destination, kind).Observe(float64(rec.Sends))
	if status == string(engine.StatusVerified) {
		m.readsNeeded.WithLabelValues(destination, kind).Observe(float64(rec.Reads))
	}
}

// Repeated implements [engine.RepeatMeter].
func (m *Meter) Repeated(rec ledger.Record) {
	destination, kind := m.words.Place(rec)
	m.replays.WithLabelValues(destination, kind).Inc()
	m.prevented.WithLabelValues(destination, kind, "replay").Inc()
}

// Shown implements [engine.EffectMeter].
func (m *Meter) Shown(rec ledger.Record, v verify.Verdict, after time.Duration) {
	destination, kind := m.words.Place(rec)
	if rec.LastFate == ledger.FateAnswered {
		m.seenAfter.WithLabelValues(destination, kind).Observe(after.Seconds())
	}
	if telemetry.Prevented(rec, v) {
		m.prevented.WithLabelValues(destination, kind, "read").Inc()
	}
}

// Held implements [engine.Meter].
func (m *Meter) Held(rec ledger.Record, h engine.Hold) {
	destination, kind := m.words.Place(rec)
	m.held.WithLabelValues(destination, kind, telemetry.Rule(h)).Inc()
}

// Failed implements [engine.Meter].
func (m *Meter) Failed(rec ledger.Record, err error) {
	destination, kind := m.words.Place(rec)
	m.failed.WithLabelValues(destination, kind, telemetry.Cause(err)).Inc()
}

// Reloaded is told that a changed configuration was looked at, and whether it was
// taken.
func (m *Meter) Reloaded(inForce bool) {
	result := refused
	if inForce {
		result = taken
	}
	m.reloads.WithLabelValues(result).Inc()
}
