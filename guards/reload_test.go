package guards_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
)

func settings(s guards.Settings) map[string]guards.Settings {
	return map[string]guards.Settings{crm: s}
}

// enters asks n times, and returns how many sends passed and how to end them.
func (w *worker) enters(ctx context.Context, n int) (passed int, leave func()) {
	var all []func(engine.Sent)
	for range n {
		if l, hold := w.Enter(ctx, write(crm)); hold == nil {
			all = append(all, l)
		}
	}
	return len(all), func() {
		for _, l := range all {
			l(answered)
		}
	}
}

// Replaced settings apply to the next send.
func TestSettingsAreReplaced(t *testing.T) {
	slots := func(n int) guards.Settings { return guards.Settings{Concurrency: n} }
	for name, c := range map[string]struct {
		before, after guards.Settings
		first, then   int // sends that passed of ten, the first ones under way
		reason        string
	}{
		"more slots":    {slots(1), slots(3), 1, 2, "two more are free"},
		"fewer slots":   {slots(3), slots(1), 3, 0, "those under way are let end"},
		"no slots":      {slots(1), slots(-1), 1, 10, "nothing is counted any more"},
		"the default":   {slots(1), slots(0), 1, 10, "many are free"},
		"first slots":   {slots(-1), slots(2), 10, 2, "those under way were never counted"},
		"other slots":   {slots(0), slots(2), 10, 0, "those under way count"},
		"slots as many": {slots(2), slots(2), 2, 0, "nothing has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crew := newCrew(t, 1, c.before)
				defer crew.close()
				w := crew.workers[0]
				got, leave := w.enters(t.Context(), 10)
				if got != c.first {
					t.Fatalf("%d passed at first, want %d", got, c.first)
				}
				w.Set(settings(c.after))
				then, end := w.enters(t.Context(), 10)
				if then != c.then {
					t.Errorf("%d passed then, want %d: %s", then, c.then, c.reason)
				}
				leave()
				end()
				time.Sleep(time.Minute)
				want := c.after.Concurrency
				if want <= 0 {
					want = 10
				}
				if again, end := w.enters(t.Context(), 10); again != want {
					t.Errorf("%d passed when all had ended, want %d: %s", again, want, c.reason)
				} else {
					end()
				}
			})
		})
	}
}

func TestRatesAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := func(n int) guards.Settings {
			return guards.Settings{Rate: connectors.Rate{Calls: n, Per: time.Minute}}
		}
		crew := newCrew(t, 1, rate(-1))
		defer crew.close()
		w := crew.workers[0]
		for i, c := range []struct {
			calls       int
			least, most int
		}{{-1, 50, 50}, {2, 1, 2}, {-1, 50, 50}, {240, 8, 25}} {
			w.Set(settings(rate(c.calls)))
			time.Sleep(2 * time.Minute)
			began, got := time.Now(), 0
			for range 50 {
				n, leave := w.enters(t.Context(), 1)
				if time.Since(began) > time.Second {
					break
				}
				got += n
				leave()
			}
			if got < c.least || got > c.most {
				t.Errorf("%d. %d calls a minute: %d passed within a second, want %d to %d", i, c.calls, got, c.least, c.most)
			}
		}
	})
}

// Only a probe closes an open breaker, whatever the settings.
func TestBreakersAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, guards.Settings{Breaker: guards.Breaker{Failures: -1}})
		defer crew.close()
		w := crew.workers[0]
		fail := func(n int) (passed int) {
			for range n {
				if leave, hold := w.Enter(t.Context(), write(crm)); hold == nil {
					leave(unknown)
					passed++
				}
			}
			return passed
		}
		if got := fail(20); got != 20 {
			t.Fatalf("%d passed where there is no breaker", got)
		}
		w.Set(settings(guards.Settings{Breaker: guards.Breaker{Failures: 3}}))
		if got := fail(20); got != 3 {
			t.Errorf("%d passed, and three failures open it", got)
		}
		time.Sleep(time.Second)
		w.Set(settings(guards.Settings{Breaker: guards.Breaker{Failures: 100}}))
		if got := fail(5); got != 0 {
			t.Errorf("%d passed while it is open", got)
		}
	})
}

func TestSettingsAreReplacedWhileSendsAreMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 2, guards.Settings{Concurrency: 3})
		defer crew.close()
		var wg sync.WaitGroup
		for i, w := range crew.workers {
			for j := range 4 {
				wg.Go(func() {
					for k := range 25 {
						w.Set(settings(guards.Settings{Concurrency: (i + j + k) % 4, Rate: connectors.Rate{Calls: 100 + 50*k, Per: time.Second},
							Breaker: guards.Breaker{Failures: 5 + k}}))
						if leave, hold := w.Enter(t.Context(), write(crm)); hold == nil {
							time.Sleep(time.Millisecond)
							leave(map[bool]engine.Sent{true: unknown, false: answered}[k%7 == 0])
						}
					}
				})
			}
		}
		wg.Wait()
		for _, w := range crew.workers {
			w.Set(settings(guards.Settings{Concurrency: 2}))
		}
		time.Sleep(10 * time.Minute)
		if got, end := crew.workers[0].enters(t.Context(), 10); got != 2 {
			t.Errorf("%d slots came back of 2", got)
		} else {
			end()
		}
	})
}

// Unused permits and slots of earlier settings do not count.
func TestWhatWasTakenBeforeIsNotUsed(t *testing.T) {
	crowd := func(w *worker, n int) (passed int) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range n {
			wg.Go(func() {
				if leave, hold := w.Enter(context.Background(), write(crm)); hold == nil {
					mu.Lock()
					passed++
					mu.Unlock()
					time.Sleep(10 * time.Second)
					leave(answered)
				}
			})
		}
		wg.Wait()
		return passed
	}
	rate := func(n int) guards.Settings { return guards.Settings{Rate: connectors.Rate{Calls: n, Per: time.Minute}} }
	for name, c := range map[string]struct {
		before, after guards.Settings
		most          int
	}{
		"slots":          {guards.Settings{Concurrency: 5}, guards.Settings{Concurrency: 1}, 1},
		"permits":        {rate(60000), rate(2), 2},
		"a first rate":   {guards.Settings{}, rate(2), 2},
		"a lower rate":   {rate(600), rate(2), 2},
		"both, the same": {guards.Settings{Concurrency: 5}, guards.Settings{Concurrency: 5}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crew := newCrew(t, 1, c.before)
				defer crew.close()
				crowd(crew.workers[0], 5)
				crowd(crew.workers[0], 5)
				crew.workers[0].Set(settings(c.after))
				if got := crowd(crew.workers[0], 20); got > c.most || got == 0 {
					t.Errorf("%d passed, want at most %d", got, c.most)
				}
			})
		})
	}
}

// Failures are counted by the breaker's current settings.
func TestABreakerCountsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, guards.Settings{Breaker: guards.Breaker{Failures: 100}})
		defer crew.close()
		w, passed := crew.workers[0], 0
		for i := range 20 {
			if i == 10 {
				w.Set(settings(guards.Settings{Breaker: guards.Breaker{Failures: 3}}))
			}
			if leave, hold := w.Enter(t.Context(), write(crm)); hold == nil {
				leave(unknown)
				passed++
			}
		}
		if passed != 13 {
			t.Errorf("%d passed, want 10 and then 3", passed)
		}
	})
}
