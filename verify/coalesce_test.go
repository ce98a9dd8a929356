package verify_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// shelf is a destination with bulk reads. All calls take the same time, and fail as configured.
type shelf struct {
	takes time.Duration
	fail  func(qs []connectors.Query) error // of whole bulk calls
	one   func(ctx context.Context, q connectors.Query) error
	short bool // bulk calls forget the last answer
	// counts is how often a call counts itself.
	counts int
	when   func() time.Time

	mu     sync.Mutex
	single int
	bulks  []int // how many queries each took
	under  int
	most   int // in progress at once
	ended  int // calls whose context ended first
	shared connectors.Observation
}

func (*shelf) Write(context.Context, connectors.Request) (connectors.Receipt, error) {
	return connectors.Receipt{Ref: "written"}, nil
}

// arrive counts one call and waits for its duration.
func (s *shelf) arrive(ctx context.Context, queries int) error {
	s.mu.Lock()
	if queries == 0 {
		s.single++
	} else {
		s.bulks = append(s.bulks, queries)
	}
	s.under++
	s.most = max(s.most, s.under)
	s.mu.Unlock()
	for range s.counts {
		connectors.Called(ctx)
	}
	var err error
	if s.takes > 0 {
		select {
		case <-time.After(s.takes):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under--
	if err != nil {
		s.ended++
	}
	return err
}

func (s *shelf) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	began := time.Now()
	if err := s.arrive(ctx, 0); err != nil {
		return connectors.Observation{}, err
	}
	if s.one != nil {
		if err := s.one(ctx, q); err != nil {
			return connectors.Observation{}, err
		}
	}
	return s.observe(q, began), nil
}

func (s *shelf) observe(q connectors.Query, began time.Time) connectors.Observation {
	if s.shared.Records != nil {
		return s.shared
	}
	if s.when != nil {
		began = s.when()
	}
	return connectors.Observation{At: began, Records: []connectors.Record{{Ref: q.Stamp, Fields: maps.Clone(q.Intent.Key)}}}
}

func (s *shelf) ReadMany(ctx context.Context, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	began := time.Now()
	if err := s.arrive(ctx, len(qs)); err != nil {
		return nil, err
	}
	if s.fail != nil {
		if err := s.fail(qs); err != nil {
			return nil, err
		}
	}
	var out []connectors.BulkAnswer
	for _, q := range qs {
		var a connectors.BulkAnswer
		if s.one != nil {
			a.Err = s.one(ctx, q)
		}
		if a.Err == nil {
			a.Observation = s.observe(q, began)
		}
		out = append(out, a)
	}
	if s.short {
		out = out[1:]
	}
	return out, nil
}

func (s *shelf) calls() int { return s.single + len(s.bulks) }

func asks(n int) connectors.Query {
	return connectors.Query{Stamp: fmt.Sprint("s", n), Intent: intent.WriteIntent{Key: intent.Fields{"id": fmt.Sprint(n)}}}
}

const bulkLimit = 50

func coalesced(s *shelf, o *verify.CoalescerOptions) (*verify.Coalescer, connectors.Profile) {
	p := connectors.Profile{BulkLimit: bulkLimit, ReadTimeout: 10 * time.Second}
	return verify.NewCoalescer(s, p, o).(*verify.Coalescer), p
}

// readAll makes n reads at once and returns their errors. Each result must be the reader's own.
func readAll(t *testing.T, c connectors.Connector, p connectors.Profile, n int) []error {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			began := time.Now()
			obs, err := verify.Read(t.Context(), c, p, asks(i))
			if errs[i] = err; err != nil {
				return
			}
			want := []connectors.Record{{Ref: asks(i).Stamp, Fields: asks(i).Intent.Key}}
			if diff := cmp.Diff(want, obs.Records); diff != "" {
				t.Errorf("read %d got another's answer (-want +got):\n%s", i, diff)
			}
			if obs.At.After(began) {
				t.Errorf("read %d is reported to have begun %s after it was asked", i, obs.At.Sub(began))
			}
		})
	}
	wg.Wait()
	return errs
}

func TestNoCoalescerWithoutBulkReads(t *testing.T) {
	for name, d := range map[string]struct {
		reason string
		conn   connectors.Connector
		limit  int
	}{
		"no bulk read": {"there is nothing to join into", script{}, 50},
		"no limit":     {"the profile has no bulk read of this kind", &shelf{}, 0},
		"limit of one": {"nothing can be joined", &shelf{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, is := verify.NewCoalescer(d.conn, connectors.Profile{BulkLimit: d.limit}, nil).(*verify.Coalescer); is {
				t.Errorf("wrapped: %s", d.reason)
			}
		})
	}
}

func TestALoneReadIsMadeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{takes: 100 * time.Millisecond}
		c, p := coalesced(s, nil)
		for i := range 5 {
			began := time.Now()
			if _, err := verify.Read(t.Context(), c, p, asks(i)); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != s.takes {
				t.Errorf("read %d took %s, want the %s of the call alone", i, took, s.takes)
			}
		}
		if s.single != 5 || len(s.bulks) != 0 {
			t.Errorf("%d single and %v bulk reads; want 5 and none", s.single, s.bulks)
		}
		want := verify.CoalescerStats{Queries: 5, Calls: 5}
		if diff := cmp.Diff(want, c.Stats()); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
		if r, err := c.Write(t.Context(), connectors.Request{}); err != nil || r.Ref != "written" {
			t.Errorf("a write is not passed on: %+v, %v", r, err)
		}
	})
}

// Where the profile has reads wait for each other, the first waits that long, those that come in the
// meantime share its call, and one that comes during the call waits for the next: the call may be
// older than its send.
func TestReadsWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait, takes = 10 * time.Second, 2 * time.Second
		s := &shelf{takes: takes}
		p := connectors.Profile{BulkLimit: bulkLimit, BulkWait: wait, ReadTimeout: 3 * time.Second}
		c := verify.NewCoalescer(s, p, nil)
		var wg sync.WaitGroup
		for n, d := range []struct{ asked, ended time.Duration }{
			{0, wait + takes}, {wait - 1, wait + takes}, {wait + 1, 2*wait + 1 + takes}, {wait + takes + 1, 2*wait + 1 + takes},
		} {
			wg.Go(func() {
				began := time.Now()
				time.Sleep(d.asked)
				if _, err := verify.Read(t.Context(), c, p, asks(n)); err != nil {
					t.Errorf("read %d: %v", n, err)
				}
				if took := time.Since(began); took != d.ended {
					t.Errorf("read %d ended after %s, want %s", n, took, d.ended)
				}
			})
		}
		wg.Wait()
		if diff := cmp.Diff([]int{2, 2}, s.bulks); diff != "" || s.single != 0 {
			t.Errorf("%d single and these bulk reads (-want +got):\n%s", s.single, diff)
		}
	})
}

// No read waits for others longer than the profile says, or than leaves time for its call before
// its caller gives up: not when the first of the queue went with a smaller call, and not when a
// caller has less time.
func TestAReadThatWaitsIsMadeInTime(t *testing.T) {
	const wait, takes, timeout = 10 * time.Second, 2 * time.Second, 3 * time.Second
	for name, d := range map[string]struct {
		reason string
		fails  int // bulk reads, the first ones
		reads  int // at once, after one full call
		within time.Duration
		ended  time.Duration
	}{
		"left behind":   {"those that a smaller call leaves have waited already", 1, 30, time.Minute, wait + takes},
		"little time":   {"its caller gives up sooner", 0, 1, 5 * time.Second, 5*time.Second - timeout + takes},
		"no time":       {"its call may take as long as there is", 0, 1, takes + 1, takes},
		"time for both": {"it waits as long as the others", 0, 30, time.Minute, wait + takes},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{takes: takes, fail: func([]connectors.Query) error {
					if d.fails--; d.fails >= 0 {
						return errors.New("503")
					}
					return nil
				}}
				p := connectors.Profile{BulkLimit: bulkLimit, BulkWait: wait, ReadTimeout: timeout}
				c := verify.NewCoalescer(s, p, nil)
				began := time.Now()
				var wg sync.WaitGroup
				for n := range bulkLimit {
					wg.Go(func() { _, _ = verify.Read(t.Context(), c, p, asks(n)) })
				}
				synctest.Wait()
				for n := range d.reads {
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), d.within)
						defer cancel()
						if _, err := verify.Read(ctx, c, p, asks(bulkLimit+n)); err != nil {
							t.Errorf("read %d: %v: %s", n, err, d.reason)
						}
						if took := time.Since(began); took > d.ended {
							t.Errorf("read %d ended after %s, want %s: %s", n, took, d.ended, d.reason)
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

// A caller with little time does not wait behind one with more.
func TestAReadWithLittleTimeHurriesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{takes: time.Second}
		p := connectors.Profile{BulkLimit: bulkLimit, BulkWait: 10 * time.Second, ReadTimeout: 2 * time.Second}
		c := verify.NewCoalescer(s, p, nil)
		began := time.Now()
		var wg sync.WaitGroup
		for n, within := range []time.Duration{time.Minute, 4 * time.Second} {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				_, err := verify.Read(ctx, c, p, asks(n))
				if took := time.Since(began); err != nil || took != 3*time.Second {
					t.Errorf("read %d ended after %s: %v", n, took, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if diff := cmp.Diff([]int{2}, s.bulks); diff != "" {
			t.Errorf("bulk reads (-want +got):\n%s", diff)
		}
	})
}

func TestConcurrentReadsShareCalls(t *testing.T) {
	for name, takes := range map[string]time.Duration{"at once": 0, "quick": 2 * time.Millisecond, "usual": 100 * time.Millisecond, "slow": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{takes: takes}
				c, p := coalesced(s, nil)
				for round := range 3 {
					before := s.calls()
					began := time.Now()
					for i, err := range readAll(t, c, p, 256) {
						if err != nil {
							t.Errorf("read %d: %v", i, err)
						}
					}
					if took := time.Since(began); took > 2*takes+50*time.Millisecond {
						t.Errorf("round %d took %s with calls of %s", round, took, takes)
					}
					if takes > 0 && s.calls()-before > 10 {
						t.Errorf("256 reads at once made %d calls (%d single, %v); want at most 10", s.calls()-before, s.single, s.bulks)
					}
				}
				if s.most > 8 {
					t.Errorf("%d calls were under way at once; want at most 8", s.most)
				}
				stats := c.Stats()
				if stats.Queries != 3*256 || int(stats.Calls) != s.calls() || int(stats.Bulk) > len(s.bulks) {
					t.Errorf("counts %+v with %d calls", stats, s.calls())
				}
			})
		})
	}
}

// Each call counts once, for one of the reads that shared it, whether its connector counts or not.
func TestCallsAreCounted(t *testing.T) {
	for name, d := range map[string]struct {
		counts int // of the connector, for each call
		want   int
	}{"a connector that does not": {0, 1}, "one call": {1, 1}, "several": {3, 3}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{takes: 100 * time.Millisecond, counts: d.counts}
				c, p := coalesced(s, nil)
				var wg sync.WaitGroup
				var total atomic.Int64
				for i := range 256 {
					wg.Go(func() {
						ctx := connectors.CountCalls(t.Context())
						if _, err := verify.Read(ctx, c, p, asks(i)); err != nil {
							t.Error(err)
						}
						total.Add(int64(connectors.Calls(ctx)))
					})
				}
				wg.Wait()
				if got, want := int(total.Load()), d.want*s.calls(); got != want || s.calls() > 10 {
					t.Errorf("%d calls are counted, and %d were made", got, want)
				}
				ctx := connectors.CountCalls(t.Context())
				if _, err := verify.Read(ctx, s, p, asks(1)); err != nil || connectors.Calls(ctx) != d.want {
					t.Errorf("%d calls are counted of a read that is not joined, want %d; %v", connectors.Calls(ctx), d.want, err)
				}
			})
		})
	}
}

// A full bulk read need not wait for more.
func TestAFullCallGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{takes: 100 * time.Millisecond}
		c, p := coalesced(s, nil)
		began := time.Now()
		readAll(t, c, p, 1+2*bulkLimit)
		if took := time.Since(began); took != s.takes {
			t.Errorf("it took %s; want the %s of calls that begin at once", took, s.takes)
		}
		if diff := cmp.Diff([]int{bulkLimit, bulkLimit}, s.bulks); diff != "" {
			t.Errorf("bulk reads (-want +got):\n%s", diff)
		}
	})
}

// A stream of sequential reads is joined too, and none waits long.
func TestAStreamOfReadsIsJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes, every, reads = 100 * time.Millisecond, 2 * time.Millisecond, 1000
		s := &shelf{takes: takes}
		c, p := coalesced(s, nil)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var longest time.Duration
		for i := range reads {
			wg.Go(func() {
				began := time.Now()
				if _, err := verify.Read(t.Context(), c, p, asks(i)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				longest = max(longest, time.Since(began))
			})
			time.Sleep(every)
		}
		wg.Wait()
		if longest > takes*5/4 {
			t.Errorf("the longest read took %s; want at most a quarter more than the %s of a call", longest, takes)
		}
		if got := s.calls(); got > reads/8 {
			t.Errorf("%d reads made %d calls; want at most an eighth", reads, got)
		}
		if s.most > 6 {
			t.Errorf("%d calls were under way at once; want about four", s.most)
		}
	})
}

// A read that began before a query does not answer it.
func TestAReadJoinsNoCallThatBeganEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{takes: time.Second}
		c, _ := coalesced(s, &verify.CoalescerOptions{Calls: 1})
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 400 * time.Millisecond)
				asked := time.Now()
				obs, err := c.Read(t.Context(), asks(i))
				if err != nil || obs.At.Before(asked) {
					t.Errorf("read %d: begun %s before it was asked, %v", i, asked.Sub(obs.At), err)
				}
			})
		}
		wg.Wait()
		if diff := cmp.Diff([]int{2}, s.bulks); diff != "" || s.single != 1 {
			t.Errorf("%d single reads, bulk reads (-want +got):\n%s", s.single, diff)
		}
	})
}

// Whatever the connector says, the observation is not younger than the call.
func TestABulkReadIsNoYoungerThanItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{takes: time.Second, when: time.Now}
		c, _ := coalesced(s, &verify.CoalescerOptions{Calls: 1})
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				obs, err := c.Read(t.Context(), asks(i))
				if err != nil || (i > 0 && !obs.At.Equal(begin.Add(s.takes))) {
					t.Errorf("read %d is reported to have begun after %s, %v", i, obs.At.Sub(begin), err)
				}
			})
		}
		wg.Wait()
	})
}

func TestWhoGivesUpSpoilsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{takes: time.Second}
		c, p := coalesced(s, &verify.CoalescerOptions{Calls: 1})
		impatient := func(n int, patience time.Duration) func() {
			return func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if _, err := verify.Read(ctx, c, p, asks(n)); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("read %d: %v; want that it gave up", n, err)
				}
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { readAll(t, c, p, 4) })       // one alone, three wait
		synctest.Wait()                             //
		wg.Go(impatient(10, 500*time.Millisecond))  // leaves the queue
		wg.Go(impatient(11, 1500*time.Millisecond)) // leaves the call
		wg.Wait()
		if diff := cmp.Diff([]int{4}, s.bulks); diff != "" || s.ended != 0 {
			t.Errorf("%d calls ended early; bulk reads (-want +got):\n%s", s.ended, diff)
		}

		wg.Go(func() { readAll(t, c, p, 1) })
		synctest.Wait()
		wg.Go(impatient(12, 1500*time.Millisecond))
		wg.Go(impatient(13, 1600*time.Millisecond))
		began := time.Now()
		wg.Wait()
		synctest.Wait()
		if took := time.Since(began); s.ended != 1 || took != 1600*time.Millisecond {
			t.Errorf("%d calls ended early, after %s; want the one for which no caller waits", s.ended, took)
		}
		for i, err := range readAll(t, c, p, 3) {
			if err != nil {
				t.Errorf("read %d afterwards: %v", i, err)
			}
		}
	})
}

// A hanging call ends with the profile's bound, and delays no other.
func TestAHangingCallDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := asks(1).Stamp
		s := &shelf{one: func(ctx context.Context, q connectors.Query) error {
			if q.Stamp == hung {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}
		c, p := coalesced(s, nil)
		var wg sync.WaitGroup
		began := time.Now()
		wg.Go(func() {
			_, err := verify.Read(t.Context(), c, p, asks(1))
			if took := time.Since(began); err == nil || took != p.ReadTimeout {
				t.Errorf("it hung for %s, %v; want the read time-out", took, err)
			}
		})
		synctest.Wait()
		for i := range 10 {
			began := time.Now()
			if _, err := verify.Read(t.Context(), c, p, asks(10+i)); err != nil || time.Since(began) > 50*time.Millisecond {
				t.Errorf("read %d took %s, %v, while another hangs", i, time.Since(began), err)
			}
		}
		wg.Wait()
	})
}

func TestABadAnswerHitsItsOwnQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := errors.New("this one cannot be read")
		s := &shelf{takes: time.Second, one: func(_ context.Context, q connectors.Query) error {
			if q.Stamp == asks(7).Stamp {
				return bad
			}
			return nil
		}}
		c, p := coalesced(s, nil)
		for i, err := range readAll(t, c, p, 40) {
			if want := i == 7; want != errors.Is(err, bad) || (!want && err != nil) {
				t.Errorf("read %d: %v", i, err)
			}
		}
		if c.Stats().Failed != 0 {
			t.Errorf("%+v; the call itself did not fail", c.Stats())
		}
	})
}
