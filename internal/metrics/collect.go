package metrics

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
)

const (
	// statsEvery is the shortest interval between two counts of the ledger: several
	// scrapers must not cost more than one.
	statsEvery = 5 * time.Second
	// statsTimeout bounds one count: a scrape that gets no numbers is better
	// than none at all.
	statsTimeout = 3 * time.Second
)

// Sources are a meter's sources of current state. They are read at most once in a few
// seconds. The zero value has none.
type Sources struct {
	// Ledger counts open writes. Default nothing is counted.
	Ledger ledger.Maintenance
	// InForce returns the guards in force. Default there are none.
	InForce func(context.Context) (Status, error)
	// Telemetry counts the exported telemetry, by signal. Default nothing is.
	Telemetry func() map[string]Exported
	// Audit returns the state of the audit log, false where this process has not sealed
	// it. Default there is none.
	Audit func() (Audit, bool)
}

// Exported counts the telemetry of one signal: what was delivered, and what was lost
// because delivery failed or the buffer was full.
type Exported struct{ Delivered, Failed, Dropped int64 }

// Audit is the state of the audit log.
type Audit struct {
	// Unsealed is the longest time that an event has waited to be sealed; below 0 where
	// another process seals.
	Unsealed time.Duration
	// Failures counts failed sealings. Kept, Failed and Dropped count heads handed to
	// their destinations, Waiting those still to be handed over.
	Failures, Kept, Failed, Dropped int64
	Waiting                         int
}

// Status is the state of the guards over sends, and of learned lags.
type Status struct {
	// Breakers are the states of circuit breakers ("closed", "half-open",
	// "open") by destination, Paused the destinations to which nothing is sent
	// now.
	Breakers map[string]string
	// LoginRefused is for how long destinations have refused the login. Default:
	// they have not.
	LoginRefused map[string]time.Duration
	Paused       []string
	// Stops counts the stops in force by what they stop: "all", "tenant",
	// "destination", "tool", or "several" of these together.
	Stops map[string]int
	Lags  []Lag
}

// Lag is how long after a send its effect became visible, on one way of reading
// ("" for all of them together).
type Lag struct {
	Destination, Kind, Path string
	P50, P90, P99           time.Duration
}

// collector reads the current state for each scrape.
type collector struct {
	meter *Meter
	from  Sources
	now   func() time.Time

	mu   sync.Mutex
	last count
}

// count is the result of one count.
type count struct {
	at      time.Time
	stats   ledger.QueueStats
	status  Status
	err     error // of the count
	unknown error
}

var collected = []metric{
	statsUp, queued, queueDue, queueLeased, queueOrphaned, queueWaiting, queueOldest, queueAge, outbox, outboxOldest, outboxRefused, damaged,
	breaker, loginRefused, stops, paused, visibility, delivered, lost, unsealed, sealFailures, heads, headsWaiting,
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range collected {
		to <- m.desc()
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(to chan<- prometheus.Metric) {
	found := c.count()
	if c.from.Ledger != nil {
		gauge(to, statsUp, truth(found.err == nil))
	}
	if c.from.Ledger != nil && found.err == nil {
		c.open(to, found.stats)
	}
	if c.from.InForce != nil && found.unknown == nil {
		c.status(to, found.status)
	}
	if c.from.Audit != nil {
		c.audit(to)
	}
	if c.from.Telemetry != nil {
		c.exported(to)
	}
}

// count counts the ledger, unless the last count is recent.
func (c *collector) count() count {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if !c.last.at.IsZero() && now.Sub(c.last.at) < statsEvery {
		return c.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	c.last = count{at: now}
	if c.from.Ledger != nil {
		c.last.stats, c.last.err = c.from.Ledger.QueueStats(ctx)
	}
	if c.from.InForce != nil {
		c.last.status, c.last.unknown = c.from.InForce(ctx)
	}
	return c.last
}

// exported counts the exported telemetry.
func (c *collector) exported(to chan<- prometheus.Metric) {
	for signal, t := range c.from.Telemetry() {
		total(to, delivered, t.Delivered, signal)
		total(to, lost, t.Failed, signal, "failed")
		total(to, lost, t.Dropped, signal, "dropped")
	}
}

// audit reports the state of the audit log, if it is sealed here.
func (c *collector) audit(to chan<- prometheus.Metric) {
	a, here := c.from.Audit()
	if !here {
		return
	}
	if a.Unsealed >= 0 {
		gauge(to, unsealed, a.Unsealed.Seconds())
	}
	gauge(to, headsWaiting, float64(a.Waiting))
	total(to, sealFailures, a.Failures)
	total(to, heads, a.Kept, "kept")
	total(to, heads, a.Failed, "failed")
	total(to, heads, a.Dropped, "dropped")
}

// place is the key by which the queues of all tenants are summed.
type place struct{ destination, state string }

func (c *collector) open(to chan<- prometheus.Metric, s ledger.QueueStats) {
	all := map[place]ledger.Queue{}
	for _, q := range s.Queues {
		at := place{c.destination(q.Destination), string(q.State)}
		sum := all[at]
		sum.Count += q.Count
		sum.Due += q.Due
		sum.Leased += q.Leased
		sum.Orphaned += q.Orphaned
		sum.Waiting += q.Waiting
		sum.OldestDue = earlier(sum.OldestDue, q.OldestDue)
		sum.OldestCreated = earlier(sum.OldestCreated, q.OldestCreated)
		all[at] = sum
	}
	for at, q := range all {
		gauge(to, queued, float64(q.Count), at.destination, at.state)
		gauge(to, queueDue, float64(q.Due), at.destination, at.state)
		gauge(to, queueLeased, float64(q.Leased), at.destination, at.state)
		gauge(to, queueOrphaned, float64(q.Orphaned), at.destination, at.state)
		gauge(to, queueWaiting, float64(q.Waiting), at.destination, at.state)
		gauge(to, queueOldest, age(q.OldestDue, s.Now), at.destination, at.state)
		gauge(to, queueAge, age(q.OldestCreated, s.Now), at.destination, at.state)
	}
	gauge(to, outbox, float64(s.Outbox))
	gauge(to, outboxOldest, age(s.Oldest, s.Now))
	gauge(to, outboxRefused, float64(len(s.Refused)))
	gauge(to, damaged, float64(len(s.Damaged)))
}

// destination is a destination's name as a label.
func (c *collector) destination(name string) string {
	return c.meter.words.Destination(name)
}

func (c *collector) status(to chan<- prometheus.Metric, s Status) {
	isPaused := map[string]bool{}
	for _, name := range s.Paused {
		isPaused[name] = true
	}
	for _, name := range c.meter.known.Names() {
		gauge(to, paused, truth(isPaused[name]), name)
		gauge(to, loginRefused, s.LoginRefused[name].Seconds(), name)
		if state, ok := s.Breakers[name]; ok {
			for _, each := range []string{"closed", "half-open", "open"} {
				gauge(to, breaker, truth(each == state), name, each)
			}
		}
	}
	for _, scope := range []string{"all", "tenant", "destination", "tool", "several"} {
		gauge(to, stops, float64(s.Stops[scope]), scope)
	}
	for _, l := range s.Lags {
		path, ok := c.path(l)
		if !ok {
			continue
		}
		gauge(to, visibility, l.P50.Seconds(), l.Destination, l.Kind, path, "0.5")
		gauge(to, visibility, l.P90.Seconds(), l.Destination, l.Kind, path, "0.9")
		gauge(to, visibility, l.P99.Seconds(), l.Destination, l.Kind, path, "0.99")
	}
}

// path is a way of reading as a label; false if the destination does not declare it: no
// other name becomes a label.
func (c *collector) path(l Lag) (string, bool) {
	_, profile, err := c.meter.known.Lookup(l.Destination, l.Kind)
	if err != nil {
		return "", false
	}
	if l.Path == "" {
		return "any", true
	}
	return l.Path, slices.ContainsFunc(profile.Reads, func(p connectors.ReadPath) bool { return p.Path == l.Path })
}

func gauge(to chan<- prometheus.Metric, m metric, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(m.desc(), prometheus.GaugeValue, value, labels...)
}

func total(to chan<- prometheus.Metric, m metric, n int64, labels ...string) {
	to <- prometheus.MustNewConstMetric(m.desc(), prometheus.CounterValue, float64(n), labels...)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// earlier is the earlier of two times; one that is not set does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// age is the time since t, 0 for the zero time.
func age(t, now time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(now.Sub(t), 0).Seconds()
}
