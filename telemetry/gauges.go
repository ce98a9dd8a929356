package telemetry

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
)

// statsTimeout bounds one count of a ledger: a missing value is better than a reader that hangs.
const statsTimeout = 3 * time.Second

// Gauges reports the open writes of a ledger, of all tenants together, at each collection. If the
// ledger cannot be counted they are missing, and readback.ledger.up is 0. Call stop when the
// ledger is closed.
func Gauges(mp metric.MeterProvider, known *connectors.Registry, from ledger.Maintenance) (stop func() error, err error) {
	g := &gauges{words: NewWords(known), from: from}
	meter := mp.Meter(Scope)
	for _, i := range []struct {
		into             *metric.Int64ObservableGauge
		name, unit, what string
	}{
		{&g.up, "readback.ledger.up", "1", "1 when the ledger could be counted."},
		{&g.queued, "readback.queue.writes", "{write}", "Open writes, by state; in state settled those with a pending recheck."},
		{&g.reviews, "readback.reviews.open", "{write}", "Writes that wait for a reviewer's decision."},
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
	from  ledger.Maintenance

	up, queued, reviews, held, outbox metric.Int64ObservableGauge
	due, oldest                       metric.Float64ObservableGauge
}

func (g *gauges) observe(ctx context.Context, o metric.Observer) error {
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	found, err := g.from.QueueStats(ctx)
	if err != nil {
		o.ObserveInt64(g.up, 0)
		return nil // readback.ledger.up reports it
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

// status is the key by which the queues of all tenants are summed.
type status struct {
	destination string
	state       ledger.State
}

// queues sums the open writes. States that wait for reviewers have a value for each destination,
// even 0: a series that comes and goes cannot be watched.
func (g *gauges) queues(s ledger.QueueStats) map[status]ledger.Queue {
	all := map[status]ledger.Queue{}
	for _, name := range g.words.known.Names() {
		all[status{name, ledger.Review}] = ledger.Queue{}
		all[status{name, ledger.Held}] = ledger.Queue{}
	}
	for _, q := range s.Queues {
		at := status{g.words.Destination(q.Destination), ledger.State(among(q.State, states...))}
		sum := all[at]
		sum.Count += q.Count
		sum.OldestDue = earlier(sum.OldestDue, q.OldestDue)
		sum.OldestCreated = earlier(sum.OldestCreated, q.OldestCreated)
		all[at] = sum
	}
	return all
}

// earlier is the earlier of two times; a zero time does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// age is the age of a time in seconds, 0 for a zero time.
func age(t, now time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(now.Sub(t), 0).Seconds()
}
