// Package storebench measures a ledger from the outside, each ledger by the
// same rule: what the promise costs beside a bare insert and update through the
// same driver, and what a large history costs beside a small one. Every figure
// that can be compared is a ratio of two things that were measured alternately
// within one run.
//
// The package does not know any driver: how to make a bare pair, and a ledger
// with a history, is passed in by each driver's own benchmark. It asserts no time.
package storebench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// Intent is the n-th write of ordinary size of a batch. Batches have no write
// in common.
func Intent(batch string, n int) intent.WriteIntent { return Named(fmt.Sprintf("%s-%d", batch, n)) }

// Named is the only write of ordinary size of a workflow.
func Named(name string) intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: "acme", Workflow: name, Step: "charge", Tool: "payments.create",
		Destination: "payments", Kind: "charge", Write: intent.Create, IdempotencyKey: "invoice:" + name,
		Key:    intent.Fields{"reference": name},
		Expect: intent.Fields{"amount": "120.00", "currency": "EUR", "customer": "cus_4711", "description": "Invoice " + name},
	}
}

// Reservation takes a new write and announces its send.
func Reservation(t testing.TB, w intent.WriteIntent) ledger.Reservation {
	t.Helper()
	r, err := reservation(w)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func reservation(w intent.WriteIntent) (ledger.Reservation, error) {
	rec, err := ledger.NewRecord(w)
	return ledger.Reservation{Record: rec, Owner: "worker", LeaseFor: time.Minute,
		Events: []ledger.Event{{Kind: ledger.EvAnnounced, SendFor: 30 * time.Second}}}, err
}

// Reserve takes a new write and announces its send, one commit.
func Reserve(ctx context.Context, l ledger.Ledger, w intent.WriteIntent) (ledger.Record, error) {
	r, err := reservation(w)
	if err != nil {
		return ledger.Record{}, err
	}
	r.Window = 24 * time.Hour
	return reserve(ctx, l, r)
}

func reserve(ctx context.Context, l ledger.Ledger, r ledger.Reservation) (ledger.Record, error) {
	rec, fresh, err := l.Reserve(ctx, r)
	if err != nil || !fresh {
		return ledger.Record{}, errors.Join(err, fmt.Errorf("fresh: %v", fresh))
	}
	return rec, nil
}

// Pair is the happy path of one write as the engine has it, without an engine:
// reserve and settle, two commits.
func Pair(ctx context.Context, l ledger.Ledger, w intent.WriteIntent) error {
	rec, err := Reserve(ctx, l, w)
	return settle(ctx, l, rec, err)
}

// PairOf is Pair for a reservation that was made before.
func PairOf(l ledger.Ledger, r ledger.Reservation) error {
	rec, err := reserve(context.Background(), l, r)
	return settle(context.Background(), l, rec, err)
}

func settle(ctx context.Context, l ledger.Ledger, rec ledger.Record, err error) error {
	if err == nil {
		_, err = l.Append(ctx, rec.ID, rec.Fence, Settling...)
	}
	return err
}

// Settling are the events of a send that was verified.
var Settling = []ledger.Event{
	{Kind: ledger.EvSent, Fate: ledger.FateAnswered, Code: "201", Ref: "ch_1"},
	{Kind: ledger.EvRead, Verdict: "verified", Evidence: []byte(`{"id":"ch_1","amount":"120.00","currency":"EUR"}`)},
	{Kind: ledger.EvSettled, Settlement: ledger.Verified, Rule: "accept"},
}

// Pairs measures a pair: reserve (durable), then settle (durable). Rates drift on shared machines;
// only the ratios to the bare pair, which the same driver makes in the same run, can be compared. A
// bare pair is one insert and one update of about the same size under the same indexes, one commit
// each. commits counts those of the ledger.
func Pairs(b *testing.B, open func(b *testing.B, callers int) (l ledger.Ledger, commits func() int64, bare func(i int) error)) {
	for _, callers := range callerCounts {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			l, commits, bare := open(b, callers)
			reservations := make([]ledger.Reservation, b.N)
			for i := range reservations {
				reservations[i] = Reservation(b, Named(fmt.Sprint("w", i)))
			}
			took := make([]time.Duration, b.N)
			b.ResetTimer()
			ours := spread(b, callers, 0, b.N, func(i int) error {
				start := time.Now()
				err := PairOf(l, reservations[i])
				took[i] = time.Since(start)
				return err
			})
			b.StopTimer()
			theirs := spread(b, callers, 0, b.N, bare)
			slices.Sort(took)
			b.ReportMetric(perSecond(ours), "pairs/s")
			b.ReportMetric(float64(took[b.N*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(theirs)/float64(ours), "×bare")
			b.ReportMetric(float64(commits())/float64(b.N), "commits/pair")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// rounds is how many rounds the two sides of a ratio run: the machine's speed changes within
// seconds, and both must meet the same one.
const rounds = 10

// alternate lets two sides do n things each, alternately, and returns how long each took for one
// thing in the median of its rounds.
func alternate(b *testing.B, callers, n int, one, other func(i int) error) (time.Duration, time.Duration) {
	b.Helper()
	took := alternateAll(b, callers, n, side{do: one}, side{do: other})
	return took[0], took[1]
}

// side is one of several things that are measured alternately. Its background work is done in
// rest, at the end of each of its rounds and within its time: else the others would pay for it.
type side struct {
	do   func(i int) error
	rest func()
}

// alternateAll is alternate for any number of sides.
func alternateAll(b *testing.B, callers, n int, sides ...side) []time.Duration {
	b.Helper()
	each := max(n/rounds, callers)
	took := make([][]time.Duration, len(sides))
	for round := range rounds {
		for i, s := range sides {
			one := spread(b, callers, round*each, each, s.do)
			if s.rest != nil {
				begin := time.Now()
				s.rest()
				one += time.Since(begin) / time.Duration(each)
			}
			took[i] = append(took[i], one)
		}
	}
	middle := make([]time.Duration, len(sides))
	for side := range took {
		slices.Sort(took[side])
		middle[side] = took[side][rounds/2]
	}
	return middle
}

// spread does n things in a number of goroutines and returns how long it took
// for one.
func spread(b *testing.B, callers, from, n int, do func(i int) error) time.Duration {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range callers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(from + i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start) / time.Duration(n)
}

// callerCounts are how many write at once in benchmarks.
var callerCounts = []int{1, 8, 64}

// Do measures writes from intent to verified outcome before a destination that
// costs nothing, beside bare pairs of an insert and an update, each with a
// commit of its own. ×bare is the rate against theirs.
func Do(b *testing.B, open func(b *testing.B) ledger.Ledger, bare func(b *testing.B) func(i int) error) {
	for _, callers := range callerCounts {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			e := engineOn(b, open(b))
			pair, batch := bare(b), fmt.Sprint("w", callers)
			write := func(i int) error {
				out, err := e.Do(context.Background(), Intent(batch, i))
				if err == nil && out.Status != ledger.Verified {
					err = fmt.Errorf("outcome %+v", out)
				}
				return err
			}
			ours, theirs := alternate(b, callers, b.N, write, pair)
			b.ReportMetric(perSecond(ours), "writes/s")
			b.ReportMetric(perSecond(theirs), "bare/s")
			b.ReportMetric(float64(theirs)/float64(ours), "×bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func perSecond(one time.Duration) float64 { return float64(time.Second) / float64(one) }

// Small is the history that large ones are measured against.
const Small = 10_000

// large is the history that is measured where READBACK_BENCH_ROWS does not name
// others: what is filled in seconds.
const large = 100_000

// Histories are the sizes of history to measure: READBACK_BENCH_ROWS, or
// 100,000.
func Histories(b *testing.B) int {
	b.Helper()
	text := os.Getenv("READBACK_BENCH_ROWS")
	if text == "" {
		return large
	}
	rows, err := strconv.Atoi(text)
	if err != nil || rows <= Small {
		b.Fatalf("READBACK_BENCH_ROWS=%q: want a number above %d", text, Small)
	}
	return rows
}

// Growth measures pairs of reserve and settle on a ledger with a long history and on one with a
// short one, alternately. growth-% is how much longer one takes on the former.
func Growth(b *testing.B, filled func(b *testing.B, rows int) ledger.Ledger) {
	rows := Histories(b)
	short, long := filled(b, Small), filled(b, rows)
	for _, callers := range []int{1, 8} {
		b.Run(fmt.Sprintf("rows=%d/callers=%d", rows, callers), func(b *testing.B) {
			pair := func(l ledger.Ledger, side string) func(int) error {
				batch := fmt.Sprint(side, "-", callers, "-", b.N)
				return func(i int) error { return Pair(context.Background(), l, Intent(batch, i)) }
			}
			before, after := alternate(b, callers, b.N, pair(short, "short"), pair(long, "long"))
			b.ReportMetric(perSecond(after), "pairs/s")
			b.ReportMetric(100*(float64(after)/float64(before)-1), "growth-%")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// Lookups measures what workers and people ask of a ledger with a long history and of one with a
// short one, alternately: a claim with nothing due, a listing, whether a record has open writes,
// and all writes about it. growth-% is how much longer one takes on the former.
func Lookups(b *testing.B, filled func(b *testing.B, rows int) ledger.Ledger) {
	rows := Histories(b)
	short, long := filled(b, Small), filled(b, rows)
	for what, ask := range map[string]func(l ledger.Ledger, one ledger.Record) error{
		"claim": func(l ledger.Ledger, _ ledger.Record) error {
			_, err := l.Claim(b.Context(), ledger.Claim{Owner: "worker", LeaseFor: time.Minute, Limit: 64})
			return err
		},
		"list": func(l ledger.Ledger, _ ledger.Record) error {
			_, err := l.List(b.Context(), ledger.Filter{Tenant: "acme", Limit: 100})
			return err
		},
		"open of record": func(l ledger.Ledger, one ledger.Record) error {
			_, err := l.List(b.Context(), ledger.Filter{Tenant: "acme", KeyDigest: one.KeyDigest})
			return err
		},
		"all of record": func(l ledger.Ledger, one ledger.Record) error {
			_, err := l.Find(b.Context(), ledger.Search{Tenant: "acme", KeyDigest: one.KeyDigest})
			return err
		},
	} {
		b.Run(fmt.Sprintf("rows=%d/%s", rows, what), func(b *testing.B) {
			on := func(l ledger.Ledger) func(int) error {
				one, err := l.List(b.Context(), ledger.Filter{Tenant: "acme", Limit: 1})
				if err != nil || len(one) != 1 {
					b.Fatal(one, err)
				}
				return func(int) error { return ask(l, one[0]) }
			}
			before, after := alternate(b, 1, b.N, on(short), on(long))
			b.ReportMetric(float64(after.Microseconds()), "µs")
			b.ReportMetric(100*(float64(after)/float64(before)-1), "growth-%")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// Pruning lets callers make pairs while settled writes become tombstones, and then tombstones are
// forgotten. It keeps up if it makes more of them in a second than callers make pairs.
func Pruning(b *testing.B, filled func(b *testing.B, rows int) ledger.Ledger) {
	l := filled(b, Histories(b))
	for _, rule := range []struct {
		name string
		ledger.Prune
	}{
		{"compact", ledger.Prune{Keep: time.Nanosecond, Remember: ledger.Forever, Limit: 500}},
		{"forget", ledger.Prune{Keep: time.Nanosecond, Remember: time.Nanosecond, Limit: 500}},
	} {
		b.Run(rule.name, func(b *testing.B) {
			ctx, end := context.WithCancel(b.Context())
			var callers sync.WaitGroup
			var pairs atomic.Int64
			for caller := range 8 {
				callers.Go(func() {
					batch := fmt.Sprint(rule.name, "-", caller, "-", b.N)
					for n := 0; ctx.Err() == nil; n++ {
						if err := Pair(b.Context(), l, Intent(batch, n)); err != nil {
							b.Error(err)
							return
						}
						pairs.Add(1)
					}
				})
			}
			pruned := 0
			for b.Loop() {
				did, err := l.Prune(b.Context(), rule.Prune)
				if err != nil {
					b.Fatal(err)
				}
				pruned += did.Compacted + did.Forgotten
			}
			took := b.Elapsed().Seconds()
			end()
			callers.Wait()
			b.ReportMetric(float64(pruned)/took, "pruned/s")
			b.ReportMetric(float64(pairs.Load())/took, "pairs/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// Keys measures the check whether another write began a business operation, on a ledger with a
// long history in which each write names one: reservations that name an operation and such that
// name none, alternately. key-% is how much longer one takes with a key.
func Keys(b *testing.B, filled func(b *testing.B, rows int) ledger.Ledger) {
	rows := Histories(b)
	l := filled(b, rows)
	for _, callers := range []int{1, 8} {
		b.Run(fmt.Sprintf("keys=%d/callers=%d", rows, callers), func(b *testing.B) {
			reserve := func(named bool) func(int) error {
				batch := fmt.Sprint("named-", named, "-", callers, "-", b.N)
				return func(i int) error {
					w := Intent(batch, i)
					if !named {
						w.IdempotencyKey = ""
					}
					_, err := Reserve(context.Background(), l, w)
					return err
				}
			}
			without, with := alternate(b, callers, b.N, reserve(false), reserve(true))
			b.ReportMetric(perSecond(with), "reserves/s")
			b.ReportMetric(100*(float64(with)/float64(without)-1), "key-%")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// engineOn is an engine on a ledger, before a destination that costs nothing.
func engineOn(b testing.TB, l ledger.Ledger) *engine.Engine {
	b.Helper()
	return engineWith(b, l, func(*connectors.Registry) *engine.Options { return nil })
}

// engineWith is engineOn with options, which may depend on the destinations.
func engineWith(b testing.TB, l ledger.Ledger, options func(*connectors.Registry) *engine.Options) *engine.Engine {
	b.Helper()
	d := &instant{records: map[string]connectors.Record{}}
	var reg connectors.Registry
	err := reg.Register("payments", connectors.Destination{Connector: d, Profiles: map[string]connectors.Profile{
		"charge": {Stamped: true, Unique: []intent.WriteType{intent.Create}, Settle: connectors.Within(0), Horizon: connectors.Within(time.Minute)},
	}})
	if err != nil {
		b.Fatal(err)
	}
	return engineBefore(b, l, &reg, options)
}

// engineBefore is an engine before registered destinations.
func engineBefore(b testing.TB, l ledger.Ledger, reg *connectors.Registry, options func(*connectors.Registry) *engine.Options) *engine.Engine {
	b.Helper()
	e := engine.New(l, reg, options(reg))
	b.Cleanup(e.Close)
	return e
}

// instant is a destination that costs nothing. It forgets what was read once.
type instant struct {
	mu      sync.Mutex
	records map[string]connectors.Record
}

// Write implements [connectors.Connector].
func (d *instant) Write(_ context.Context, r connectors.Request) (connectors.Receipt, error) {
	id := r.Intent.Key["reference"].(string)
	d.mu.Lock()
	defer d.mu.Unlock()
	fields := intent.Fields{"reference": id}
	for name, v := range r.Intent.Expect {
		fields[name] = v
	}
	d.records[id] = connectors.Record{Ref: id, Stamp: r.Stamp, Fields: fields}
	return connectors.Receipt{Ref: id}, nil
}

// Read implements [connectors.Connector].
func (d *instant) Read(_ context.Context, q connectors.Query) (connectors.Observation, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := connectors.Observation{Strength: connectors.Strong, At: time.Now()}
	id := q.Intent.Key["reference"].(string)
	if r, ok := d.records[id]; ok {
		seen.Records = []connectors.Record{r}
		delete(d.records, id)
	}
	return seen, nil
}
