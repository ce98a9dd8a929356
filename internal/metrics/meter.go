package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/telemetry"
	"github.com/readback-go/readback/verify"
)

var (
	// callBuckets suit calls of APIs: from a service on the same machine to the longest
	// time-out in use.
	callBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	// lifeBuckets suit a write from begin to end: one that waits for a rate limit or a
	// reviewer takes hours or days.
	lifeBuckets = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300, 1800, 7200, 86400}
	// readBuckets count reads: near one where the lag is known.
	readBuckets = []float64{0, 1, 2, 3, 5, 8, 13, 21, 50}
)

// The results of a reload.
const taken, refused = "taken", "refused"

// Meter counts. Create one with [New]. It is safe for concurrent use.
type Meter struct {
	known    *connectors.Registry
	words    telemetry.Words
	registry *prometheus.Registry

	sends, reads, ended, held, failed, reloads, replays, prevented, limited *prometheus.CounterVec
	sendSeconds, readSeconds, life, readsNeeded, sendsNeeded, seenAfter     *prometheus.HistogramVec
}

// New makes a meter for the registered destinations, on a registry of its own beside the
// numbers of the Go runtime and the process. Events at any other destination are counted
// under "other".
func New(known *connectors.Registry, from Sources) *Meter {
	m := &Meter{
		known: known, words: telemetry.NewWords(known), registry: prometheus.NewRegistry(),
		sends: counter(sends), reads: counter(reads), ended: counter(ended), held: counter(held), failed: counter(failed), reloads: counter(reloads), replays: counter(replays), prevented: counter(prevented), limited: counter(limited),
		sendSeconds: histogram(sendSeconds, callBuckets), readSeconds: histogram(readSeconds, callBuckets),
		life: histogram(lifeSeconds, lifeBuckets), readsNeeded: histogram(writeReads, readBuckets), sendsNeeded: histogram(writeSends, readBuckets), seenAfter: histogram(shownSeconds, lifeBuckets),
	}
	m.registry.MustRegister(
		m.sends, m.reads, m.ended, m.held, m.failed, m.reloads, m.replays, m.prevented, m.limited, m.sendSeconds, m.readSeconds, m.life, m.readsNeeded, m.sendsNeeded, m.seenAfter,
		&collector{meter: m, from: from, now: time.Now},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, result := range []string{taken, refused} { // so that an alert sees the first
		m.reloads.WithLabelValues(result)
	}
	for _, limit := range []string{access.LimitRate, access.LimitRequests, access.LimitStreams, access.LimitBodies} {
		m.limited.WithLabelValues(limit)
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

// Observe counts what an engine did. It is for [engine.Options].Observer.
func (m *Meter) Observe(a engine.Activity) {
	rec := a.Record
	destination, kind := m.words.Place(rec)
	switch a.Kind {
	case engine.ActivityRepeated:
		m.replays.WithLabelValues(destination, kind).Inc()
		m.prevented.WithLabelValues(destination, kind, "replay").Inc()
	case engine.ActivitySent:
		m.sends.WithLabelValues(destination, kind, telemetry.Fate(a.Sent.Fate)).Inc()
		m.sendSeconds.WithLabelValues(destination, kind).Observe(a.Sent.Took.Seconds())
	case engine.ActivityRead:
		m.reads.WithLabelValues(destination, kind, a.Verdict.String()).Add(float64(a.Calls))
		m.readSeconds.WithLabelValues(destination, kind).Observe(a.Took.Seconds())
	case engine.ActivityShown:
		if rec.LastFate == ledger.FateAnswered {
			m.seenAfter.WithLabelValues(destination, kind).Observe(a.Took.Seconds())
		}
		if telemetry.Prevented(rec, a.Verdict) {
			m.prevented.WithLabelValues(destination, kind, "read").Inc()
		}
	case engine.ActivityHeld:
		m.held.WithLabelValues(destination, kind, telemetry.Rule(a.Hold)).Inc()
	case engine.ActivityEnded:
		status := telemetry.Status(rec)
		m.ended.WithLabelValues(destination, kind, status).Inc()
		m.life.WithLabelValues(destination, kind, status).Observe(max(rec.Updated.Sub(rec.Created), 0).Seconds())
		m.sendsNeeded.WithLabelValues(destination, kind).Observe(float64(rec.Sends))
		if status == string(ledger.Verified) {
			m.readsNeeded.WithLabelValues(destination, kind).Observe(float64(rec.Reads))
		}
	case engine.ActivityFailed:
		m.failed.WithLabelValues(destination, kind, telemetry.Cause(a.Err)).Inc()
	}
}

// Limited counts a request that a limit of callers refused.
func (m *Meter) Limited(limit string) { m.limited.WithLabelValues(limit).Inc() }

// Reloaded records that a changed configuration was read, and whether it was applied.
func (m *Meter) Reloaded(inForce bool) {
	result := refused
	if inForce {
		result = taken
	}
	m.reloads.WithLabelValues(result).Inc()
}
