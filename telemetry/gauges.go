package telemetry

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
)

// Gauges shows what is open in a ledger, of all tenants together, whenever the
// numbers are collected. Where the ledger cannot be counted they are missing, and
// readback.ledger.up is 0. Call stop when the ledger is closed.
func Gauges(mp metric.MeterProvider, known *connectors.Registry, from ledger.Surveyor) (stop func() error, err error) {
	g := &gauges{words: NewWords(known), from: from}
	meter := mp.Meter(Scope)
	for _, i := range []struct {
		into             *metric.Int64ObservableGauge
		name, unit, what string
	}{
		{&g.up, "readback.ledger.up", "1", "1 when the ledger could be counted."},
		{&g.queued, "readback.queue.writes", "{write}", "Open writes, by state; in state settled those that owe a recheck."},
		{&g.reviews, "readback.reviews.open", "{write}", "Writes that wait for a person to decide what became of them."},
		{&g.held, "readback.held.open", "{write}", "Writes that wait for an approval."},
		{&g.outbox, "readback.outbox.entries", "{write}", "Writes that were enqueued in transactions of their callers and are not in the ledger proper yet."},
	} {
		if *i.into, err = meter.Int64ObservableGauge(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.what)); err != nil {
			return nil, fmt.Errorf("telemetry: %w", err)
		}
	}
	for _, i := range []struct {
		into       *metric.Float64ObservableGauge
		name, what string
	}{
		{&g.due, "readback.queue.due.age", "For how long the oldest due write has been due; 0 when none is."},
		{&g.oldest, "readback.queue.oldest.age", "How long ago the oldest open write was reserved."},
	} {
		if *i.into, err = meter.Float64ObservableGauge(i.name, metric.WithUnit("s"), metric.WithDescription(i.what)); err != nil {
			return nil, fmt.Errorf("telemetry: %w", err)
		}
	}
	r, err := meter.RegisterCallback(g.observe, g.up, g.queued, g.reviews, g.held, g.outbox, g.due, g.oldest)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	return r.Unregister, nil
}

type gauges struct {
	words Words
	from  ledger.Surveyor

	up, queued, reviews, held, outbox metric.Int64ObservableGauge
	due, oldest                       metric.Float64ObservableGauge
}

func (g *gauges) observe(ctx context.Context, o metric.Observer) error {
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	found, err := g.from.Survey(ctx)
	if err != nil {
		o.ObserveInt64(g.up, 0)
		return nil // it is told as a number
	}
	o.ObserveInt64(g.up, 1)
	o.ObserveInt64(g.outbox, int64(found.Outbox))
	for at, q := range g.queues(found) {
		destination := keyDestination.String(at.destination)
		place := with(destination, keyState.String(string(at.state)))
		o.ObserveInt64(g.queued, int64(q.Count), place)
		o.ObserveFloat64(g.due, age(q.OldestDue, found.Now), place)
		o.ObserveFloat64(g.oldest, age(q.OldestCreated, found.Now), place)
		switch at.state {
		case ledger.Review:
			o.ObserveInt64(g.reviews, int64(q.Count), with(destination))
		case ledger.Held:
			o.ObserveInt64(g.held, int64(q.Count), with(destination))
		}
	}
	return nil
}

// standing is what the queues of all tenants are added up by.
type standing struct {
	destination string
	state       ledger.State
}

// queues adds up what is open. Where people are waited for there is a number for
// each destination, be it 0: a number that comes and goes cannot be watched.
func (g *gauges) queues(s ledger.Survey) map[standing]ledger.Queue {
	all := map[standing]ledger.Queue{}
	for _, name := range g.words.known.Names() {
		all[standing{name, ledger.Review}] = ledger.Queue{}
		all[standing{name, ledger.Held}] = ledger.Queue{}
	}
	for _, q := range s.Queues {
		at := standing{g.words.Destination(q.Destination), ledger.State(among(q.State, states...))}
		sum := all[at]
		sum.Count += q.Count
		sum.OldestDue = earlier(sum.OldestDue, q.OldestDue)
		sum.OldestCreated = earlier(sum.OldestCreated, q.OldestCreated)
		all[at] = sum
	}
	return all
}

// earlier is the earlier of two times; one that is not set does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// age is how long something is ago in seconds, 0 where it never was.
func age(t, now time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(now.Sub(t), 0).Seconds()
}
