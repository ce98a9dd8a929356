package verify

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
)

const (
	// defaultCalls bounds a coalescer's concurrent calls for one destination and kind: enough
	// that a few hanging calls delay no other, few enough not to burden a slow destination.
	defaultCalls = 8
	// defaultWindow bounds how long a read waits to be joined by others: imperceptible to a
	// user, and cheaper than a second read of the same write.
	defaultWindow = 50 * time.Millisecond
	// minWindow is the wait where calls take almost no time.
	minWindow = time.Millisecond
	// windowShare is the part of a usual call that a read waits to be joined. Reads become at
	// most a quarter slower. As a new call begins at most that often, about four are in
	// progress at any load.
	windowShare = 4
	// usualAtFirst is the assumed duration of a call before one has ended: a network request to
	// a service that queries something.
	usualAtFirst = 100 * time.Millisecond
	// usualShare is the weight of the latest call in the usual duration, as a divisor.
	usualShare = 8
	// bulkRest is how long after a failed bulk read the next ones do not grow. Where no bulk
	// read works, this costs two queries one failed read per period.
	bulkRest = 10 * time.Second
)

// CoalescerOptions configures a coalescer. The zero value is valid.
type CoalescerOptions struct {
	// Calls bounds the concurrent calls. Default 8.
	Calls int
	// Window bounds how long a read waits to be joined while a call is in progress. It waits a
	// quarter of the recent duration of calls, at most this long. Default 50 ms.
	Window time.Duration
}

// CoalescerStats counts what a coalescer did. Queries minus Calls is what joining saves.
type CoalescerStats struct {
	Queries int64 // requested reads
	Calls   int64 // calls made for them, bulk and single
	Bulk    int64 // bulk reads among the calls
	Failed  int64 // bulk reads that failed as a whole
}

// Coalescer joins concurrent reads of one destination and kind into bulk reads. It is a
// connector for reading. Write is passed on; optional interfaces must be requested from the
// connector itself. Create one with [NewCoalescer], exactly one for each destination and kind.
//
// A lone read is made at once, as if there were no coalescer, unless the profile has reads wait
// for each other (BulkWait). Reads that arrive while a call is
// in progress wait: until the call ends, until they fill a bulk read, or until a short window
// has passed that depends on how long calls take. So at any load only a few calls are in
// progress, and a read is later by at most that window.
//
// A query joins only a call that begins after the query was made: an earlier read must not
// answer for a later send. A caller that gives up leaves without affecting the call for the
// others. A call without waiting callers is ended.
//
// A bulk read that fails as a whole returns an error to all of its queries, and is not repeated
// here: the destination may be failing under load, and many single reads in place of one would
// make that worse. Each write is read again at its own pace. The cause may also be one
// poisonous query, or a call too large to be answered in time. The next bulk reads therefore
// take half as many queries, down to single reads, and grow again by one with each success. A
// destination that throttles is not asked in smaller parts.
type Coalescer struct {
	conn    connectors.Connector
	bulk    connectors.BulkReader
	profile connectors.Profile
	opts    CoalescerOptions

	mu     sync.Mutex
	queue  []*asked    // in order of arrival
	window *time.Timer // ends the wait of the first in the queue; nil when none runs
	under  int         // calls in progress
	most   int         // queries in the next bulk read
	failed time.Time   // when a bulk read last failed
	usual  time.Duration
	stats  CoalescerStats
}

// asked is one read that waits for its result.
type asked struct {
	ctx   context.Context // of the caller
	query connectors.Query
	until time.Time // when its call begins at the latest, with BulkWait
	call  *call     // nil while it is in the queue
	done  chan struct{}
	seen  connectors.Observation // with err: read after done
	err   error
}

// call is one call in progress for several reads.
type call struct {
	asked  []*asked
	waited int // how many callers still wait for it
	cancel context.CancelFunc
}

// NewCoalescer returns a [Coalescer] in front of the connector, or the connector itself where
// it has no bulk read or the profile's limit is below two; o may be nil.
func NewCoalescer(conn connectors.Connector, p connectors.Profile, o *CoalescerOptions) connectors.Connector {
	bulk, ok := conn.(connectors.BulkReader)
	if !ok || p.BulkLimit < 2 {
		return conn
	}
	c := &Coalescer{conn: conn, bulk: bulk, profile: p, most: p.BulkLimit, usual: usualAtFirst}
	if o != nil {
		c.opts = *o
	}
	if c.opts.Calls <= 0 {
		c.opts.Calls = defaultCalls
	}
	if c.opts.Window <= 0 {
		c.opts.Window = defaultWindow
	}
	c.profile.BulkWait = max(p.BulkWait, 0)
	return c
}

// Write is the connector's own.
func (c *Coalescer) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	return c.conn.Write(ctx, r)
}

// Stats returns the counts so far.
func (c *Coalescer) Stats() CoalescerStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Read reads alone or together with others. Its error is the query's own, or that of the whole
// bulk read.
func (c *Coalescer) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	c.mu.Lock()
	c.stats.Queries++
	if c.profile.BulkWait == 0 && c.under == 0 && len(c.queue) == 0 {
		c.under++
		c.stats.Calls++
		c.mu.Unlock()
		defer c.ended(time.Now())
		defer countCall(ctx, connectors.Calls(ctx))
		return c.conn.Read(ctx, q)
	}
	a := &asked{ctx: ctx, query: q, until: c.latest(ctx), done: make(chan struct{})}
	c.queue = append(c.queue, a)
	c.launchFull()
	c.watch()
	c.mu.Unlock()
	select {
	case <-a.done:
		return a.seen, a.err
	case <-ctx.Done():
		c.leave(a)
		return connectors.Observation{}, ctx.Err()
	}
}

// latest is when the call of a read that comes now begins at the latest: after BulkWait, or while its
// caller still has the time that a call may take.
func (c *Coalescer) latest(ctx context.Context) time.Time {
	at := time.Now().Add(c.profile.BulkWait)
	if end, ok := ctx.Deadline(); ok && end.Add(-c.callFor()).Before(at) {
		return end.Add(-c.callFor())
	}
	return at
}

// callFor bounds a call, which begins when its reads have waited.
func (c *Coalescer) callFor() time.Duration { return c.profile.ReadFor() - c.profile.BulkWait }

// countCall counts the call of a connector that counts none: there are still as many as before.
func countCall(ctx context.Context, before int) {
	if connectors.Calls(ctx) == before {
		connectors.Called(ctx)
	}
}

// leave removes a read whose caller has given up.
func (c *Coalescer) leave(a *asked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.call == nil {
		c.queue = slices.DeleteFunc(c.queue, func(other *asked) bool { return other == a })
		return
	}
	if a.call.waited--; a.call.waited == 0 {
		a.call.cancel()
	}
}

// launchFull begins the calls that are full. The caller holds the lock.
func (c *Coalescer) launchFull() {
	for len(c.queue) >= c.most && c.under < c.opts.Calls {
		c.launch()
	}
}

// watch ensures that no read waits longer than the window. The caller holds the lock.
func (c *Coalescer) watch() {
	together := c.profile.BulkWait > 0
	if c.window != nil && !together || len(c.queue) == 0 || c.under >= c.opts.Calls {
		return // the end of a call checks again
	}
	wait := min(max(c.usual/windowShare, minWindow), c.opts.Window)
	if together { // one that came later may have less time
		c.unwatch()
		first := slices.MinFunc(c.queue, func(a, b *asked) int { return a.until.Compare(b.until) })
		wait = time.Until(first.until)
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.window != timer {
			return
		}
		c.window = nil
		if len(c.queue) > 0 && c.under < c.opts.Calls {
			c.launch()
		}
		c.watch()
	})
	c.window = timer
}

// unwatch ends the window. The caller holds the lock.
func (c *Coalescer) unwatch() {
	if c.window != nil {
		c.window.Stop()
		c.window = nil
	}
}

// launch begins a call for the first reads in the queue. The caller holds the lock.
func (c *Coalescer) launch() {
	n := min(len(c.queue), c.most)
	// The call outlives each single caller, so it has none of their contexts. For a single
	// caller it keeps the context's values, such as the trace.
	of := context.Background()
	if n == 1 {
		of = context.WithoutCancel(c.queue[0].ctx)
	}
	ctx, cancel := context.WithTimeout(of, c.callFor())
	one := &call{asked: slices.Clone(c.queue[:n]), waited: n, cancel: cancel}
	c.queue = slices.Delete(c.queue, 0, n)
	for _, a := range one.asked {
		a.call = one
	}
	c.unwatch()
	c.under++
	c.stats.Calls++
	if n > 1 {
		c.stats.Bulk++
	}
	go c.run(ctx, one)
}

// run makes a call and distributes its results.
func (c *Coalescer) run(ctx context.Context, one *call) {
	defer one.cancel()
	began := time.Now()
	defer c.ended(began)
	ctx = connectors.CountCalls(ctx)
	answers, smaller, err := c.read(ctx, one.asked)
	for range max(connectors.Calls(ctx), 1) {
		connectors.Called(one.asked[0].ctx)
	}
	c.learn(answers, smaller)
	if err != nil && len(one.asked) > 1 {
		err = shared(err, one.asked)
	}
	for i, a := range one.asked {
		if err != nil {
			a.err = err
		} else {
			a.seen, a.err = answers[i].Observation, answers[i].Err
			a.seen.At = startOf(a.seen.At, began)
		}
		close(a.done)
	}
}

// read asks the destination. An error is about all of the queries; smaller reports whether
// fewer queries may help.
func (c *Coalescer) read(ctx context.Context, all []*asked) (answers []connectors.BulkAnswer, smaller bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			answers, smaller, err = nil, true, panicked("bulk read", p)
		}
	}()
	if len(all) == 1 {
		seen, err := c.conn.Read(ctx, all[0].query)
		return []connectors.BulkAnswer{{Observation: seen, Err: err}}, false, nil
	}
	queries := make([]connectors.Query, len(all))
	for i, a := range all {
		queries[i] = a.query
	}
	answers, err = c.bulk.ReadMany(ctx, queries)
	if err == nil && len(answers) != len(queries) {
		err = fmt.Errorf("the bulk read gave %d answers to %d queries", len(answers), len(queries))
	}
	if err != nil {
		legible(err)
		return nil, connectors.FateOf(err) != connectors.FateThrottled, err
	}
	return answers, false, nil
}

// learn derives from a call how many queries the next one takes.
func (c *Coalescer) learn(answers []connectors.BulkAnswer, smaller bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n := len(answers); {
	case n == 0:
		c.stats.Failed++
		c.failed = time.Now()
		if smaller {
			c.most = max(c.most/2, 1)
		}
	case n == 1 && c.most > 1, time.Since(c.failed) < bulkRest:
	case answers[0].Err == nil || n > 1:
		c.most = min(2*c.most, c.profile.BulkLimit)
	}
}

// ended counts a call as over and begins the waiting calls.
func (c *Coalescer) ended(began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	saturated := c.under >= c.opts.Calls
	c.under--
	c.usual += (time.Since(began) - c.usual) / usualShare
	c.launchFull()
	if (saturated || c.under == 0 && c.profile.BulkWait == 0) && len(c.queue) > 0 && c.under < c.opts.Calls {
		c.launch()
	}
	c.watch()
}
