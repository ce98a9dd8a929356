package metrics

import (
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// other stands for every word that is not on a list.
const other = "other"

// The results of a reload.
const taken, refused = "taken", "refused"

// Meter counts. Create one with [New]. It is safe for concurrent use.
type Meter struct {
	known    *connectors.Registry
	registry *prometheus.Registry

	sends, reads, ended, held, failed, reloads, replays *prometheus.CounterVec
	sendSeconds, readSeconds, life, readsNeeded         *prometheus.HistogramVec
}

var (
	_ engine.Meter       = (*Meter)(nil)
	_ engine.RepeatMeter = (*Meter)(nil)
)

// New makes a meter for the registered destinations, on a registry of its own
// beside the numbers of the Go runtime and the process. What happens at any
// other destination is counted under "other".
func New(known *connectors.Registry, from Sources) *Meter {
	m := &Meter{
		known: known, registry: prometheus.NewRegistry(),
		sends: counter(sends), reads: counter(reads), ended: counter(ended), held: counter(held), failed: counter(failed), reloads: counter(reloads), replays: counter(replays),
		sendSeconds: histogram(sendSeconds, callBuckets), readSeconds: histogram(readSeconds, callBuckets),
		life: histogram(lifeSeconds, lifeBuckets), readsNeeded: histogram(writeReads, readBuckets),
	}
	m.registry.MustRegister(
		m.sends, m.reads, m.ended, m.held, m.failed, m.reloads, m.replays, m.sendSeconds, m.readSeconds, m.life, m.readsNeeded,
		&collector{meter: m, from: from, now: time.Now},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, result := range []string{taken, refused} { // so that an alert sees the first
		m.reloads.WithLabelValues(result)
	}
	return m
}

func counter(m metric) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.name, Help: m.help}, m.labels)
}

func histogram(m metric, buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.name, Help: m.help, Buckets: buckets}, m.labels)
}

// where is the destination and the kind of a write, as labels.
func (m *Meter) where(destination, kind string) (string, string) {
	if _, _, err := m.known.Lookup(destination, kind); err != nil {
		return other, other
	}
	return destination, kind
}

// among is a word where it is on the list.
func among[T ~string](word T, list ...T) string {
	if slices.Contains(list, word) {
		return string(word)
	}
	return other
}

// Sent implements [engine.Meter].
func (m *Meter) Sent(rec ledger.Record, s engine.Sent) {
	fate := among(s.Fate, connectors.FateAnswered, connectors.FateNotSent, connectors.FateRefused, connectors.FateThrottled)
	if s.Fate == connectors.FateUnknown {
		fate = "unknown"
	}
	destination, kind := m.where(rec.Destination, rec.Kind)
	m.sends.WithLabelValues(destination, kind, fate).Inc()
	m.sendSeconds.WithLabelValues(destination, kind).Observe(s.Took.Seconds())
}

// Looked implements [engine.Meter].
func (m *Meter) Looked(rec ledger.Record, v verify.Verdict, took time.Duration) {
	destination, kind := m.where(rec.Destination, rec.Kind)
	m.reads.WithLabelValues(destination, kind, v.String()).Inc()
	m.readSeconds.WithLabelValues(destination, kind).Observe(took.Seconds())
}

var statuses = []engine.Status{
	engine.StatusVerified, engine.StatusNotApplied, engine.StatusCompensated, engine.StatusAccepted, engine.StatusAbandoned,
	engine.StatusReview, engine.StatusHeld, engine.StatusInProgress, engine.StatusDenied, engine.StatusExpired, engine.StatusReported,
}

// Ended implements [engine.Meter].
func (m *Meter) Ended(rec ledger.Record) {
	o := engine.OutcomeOf(rec)
	status := among(o.Status, statuses...)
	if rec.Unverified && rec.State != ledger.Settled && rec.State != ledger.Review {
		status = "unverified"
	}
	destination, kind := m.where(rec.Destination, rec.Kind)
	m.ended.WithLabelValues(destination, kind, status).Inc()
	m.life.WithLabelValues(destination, kind, status).Observe(max(rec.Updated.Sub(rec.Created), 0).Seconds())
	if o.Status == engine.StatusVerified {
		m.readsNeeded.WithLabelValues(destination, kind).Observe(float64(rec.Reads))
	}
}

// Repeated implements [engine.RepeatMeter].
func (m *Meter) Repeated(rec ledger.Record) {
	destination, kind := m.where(rec.Destination, rec.Kind)
	m.replays.WithLabelValues(destination, kind).Inc()
}

// Held implements [engine.Meter].
func (m *Meter) Held(rec ledger.Record, h engine.Hold) {
	destination, kind := m.where(rec.Destination, rec.Kind)
	m.held.WithLabelValues(destination, kind, among(h.Rule, "rate", "breaker", "busy", "stopped")).Inc()
}

// causes names failures, the first that fits.
var causes = []struct {
	is    error
	cause string
}{
	{ledger.ErrFenced, "fenced"},
	{ledger.ErrUnavailable, "ledger_unavailable"},
	{ledger.ErrCorrupt, "ledger_corrupt"},
	{ledger.ErrClock, "clock"},
}

// Failed implements [engine.Meter].
func (m *Meter) Failed(rec ledger.Record, err error) {
	cause := other
	for _, c := range causes {
		if errors.Is(err, c.is) {
			cause = c.cause
			break
		}
	}
	destination, kind := m.where(rec.Destination, rec.Kind)
	m.failed.WithLabelValues(destination, kind, cause).Inc()
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
