package guards_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/ledger"
)

func rate(calls int, per time.Duration) connectors.Rate {
	return connectors.Rate{Calls: calls, Per: per}
}

// hammer sends through all workers, with a number of senders each, for a while.
func (c *crew) hammer(log *sendings, each int, during, took time.Duration, fate func() engine.Sent) {
	end := time.Now().Add(during)
	var all sync.WaitGroup
	for _, w := range c.workers {
		for range each {
			all.Go(func() {
				for time.Now().Before(end) {
					leave, hold := w.Enter(c.t.Context(), write(crm))
					if hold != nil {
						time.Sleep(max(hold.For, time.Millisecond))
						continue
					}
					log.begin()
					time.Sleep(took)
					log.end()
					leave(fate())
				}
			})
		}
	}
	all.Wait()
}

func TestRateIsKeptByAllWorkersTogether(t *testing.T) {
	cases := map[string]struct {
		reason          string
		rate            connectors.Rate
		workers, each   int
		during, latency time.Duration
	}{
		"one worker":     {"no other worker", rate(100, time.Second), 1, 16, 10 * time.Second, 0},
		"many workers":   {"no worker may count alone", rate(100, time.Second), 8, 4, 10 * time.Second, 0},
		"few calls":      {"bursts and batches of one", rate(3, time.Second), 5, 2, 20 * time.Second, 0},
		"per minute":     {"a window much longer than a wait", rate(30, time.Minute), 4, 3, 5 * time.Minute, 0},
		"one per second": {"the smallest rate", rate(1, time.Second), 4, 2, 20 * time.Second, 0},
		"many calls":     {"permits in batches", rate(1000, time.Second), 4, 8, 3 * time.Second, 0},
		"slow ledger":    {"the clock is known only roughly", rate(50, time.Second), 3, 8, 10 * time.Second, 20 * time.Millisecond},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crew := newCrew(t, c.workers, guards.Settings{Rate: c.rate})
				defer crew.close()
				for _, w := range crew.workers {
					w.link.slowDown(c.latency)
				}
				log := &sendings{}
				crew.hammer(log, c.each, c.during, time.Millisecond, func() engine.Sent { return answered })
				if got := log.densest(c.rate.Per); got > c.rate.Calls {
					t.Errorf("%s: %d sends within %s, at most %d", c.reason, got, c.rate.Per, c.rate.Calls)
				}
				could := int(c.during/c.rate.Per) * c.rate.Calls
				if got := len(log.at); got*10 < could*7 {
					t.Errorf("%s: only %d sends where %d were possible", c.reason, got, could)
				}
			})
		})
	}
}

func TestRateComesFromTheProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, guards.Settings{},
			connectors.Profile{Kind: "ticket", Rate: rate(1000, time.Second)},
			connectors.Profile{Kind: "note"}, // not known
			connectors.Profile{Kind: "comment", Rate: rate(10, time.Minute)})
		defer crew.close()
		passes(t, crew.workers[0], write(crm))(answered)
		if hold := held(t, crew.workers[0], write(crm), "rate"); hold.For < 5*time.Second || hold.For > 7*time.Second {
			t.Errorf("held for %s; the lowest rate of the destination is one in 6 s", hold.For)
		}
	})
}

// A commit for each send would cost as much as the write itself.
func TestPermitsAreTakenInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 2, guards.Settings{Rate: rate(60_000, time.Minute)})
		defer crew.close()
		log := &sendings{}
		crew.hammer(log, 16, 5*time.Second, time.Millisecond, func() engine.Sent { return answered })
		sets := 0
		for _, w := range crew.workers {
			_, n := w.link.counted()
			sets += n
		}
		if sets*10 > len(log.at) {
			t.Errorf("%d notes were written for %d sends; want at most one for ten", sets, len(log.at))
		}
	})
}

func TestPermitsOfADeadWorkerAreNotReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 3, guards.Settings{Rate: rate(100, time.Second)})
		defer crew.close()
		log := &sendings{}
		go func() {
			time.Sleep(1500 * time.Millisecond)
			crew.workers[0].die()
		}()
		crew.hammer(log, 8, 6*time.Second, time.Millisecond, func() engine.Sent { return answered })
		if got := log.densest(time.Second); got > 100 {
			t.Errorf("%d sends within a second, at most 100", got)
		}
		if got := len(log.at); got < 450 {
			t.Errorf("only %d sends; the others must continue at the full rate", got)
		}
	})
}

// Unused permits are not kept to add to later ones.
func TestPermitsAreNotHoarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 6, guards.Settings{Rate: rate(100, time.Second)})
		defer crew.close()
		for range 3 {
			crew.hammer(&sendings{}, 10, 400*time.Millisecond, time.Millisecond, func() engine.Sent { return notMade })
			time.Sleep(3 * time.Second)
		}
		log := &sendings{}
		crew.hammer(log, 10, 2*time.Second, time.Millisecond, func() engine.Sent { return answered })
		if got := log.densest(time.Second); got > 100 {
			t.Errorf("%d sends within a second, at most 100", got)
		}
	})
}

func TestRetryAfterIsHonouredByAll(t *testing.T) {
	cases := map[string]struct {
		reason   string
		reported engine.Sent
		pause    time.Duration
	}{
		"throttled":       {"429 with a time", engine.Sent{Fate: connectors.FateThrottled, Code: "429", RetryAfter: 20 * time.Second, Took: 1}, 20 * time.Second},
		"unknown fate":    {"503 with a time", engine.Sent{Fate: connectors.FateUnknown, Code: "503", RetryAfter: 20 * time.Second, Took: 1}, 20 * time.Second},
		"without a time":  {"the first pause is short", engine.Sent{Fate: connectors.FateThrottled, Took: 1}, time.Second},
		"an absurd pause": {"a destination must not stop itself for ever", engine.Sent{Fate: connectors.FateThrottled, RetryAfter: 1e6 * time.Hour, Took: 1}, time.Hour},
	}
	send := func(t *testing.T, w *worker) (func(engine.Sent), *engine.Hold) {
		return w.Enter(t.Context(), write(crm))
	}
	read := func(t *testing.T, w *worker) (func(engine.Sent), *engine.Hold) {
		return w.reads(t.Context(), ledger.Checking)
	}
	for name, c := range cases {
		for what, way := range map[string]struct {
			call, other entering
			paused      int // destinations whose sends would be held
		}{"send": {send, read, 1}, "read": {read, send, 0}} {
			t.Run(what+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					crew := newCrew(t, 4, guards.Settings{})
					defer crew.close()
					for _, w := range crew.workers {
						passed(t, way.call, w)(answered)
					}
					passed(t, way.call, crew.workers[0])(c.reported)
					reported := time.Now()
					if c.pause > time.Second {
						if _, hold := way.call(t, crew.workers[0]); hold == nil || hold.Rule != "rate" {
							t.Errorf("the worker itself is not held at once: %+v", hold)
						}
						time.Sleep(501 * time.Millisecond)
						for _, w := range crew.workers {
							_, hold := way.call(t, w)
							if left := c.pause - time.Since(reported); hold == nil || hold.Rule != "rate" || hold.For < left || hold.For > left+time.Second {
								t.Fatalf("%s: hold %+v, want about %s", c.reason, hold, left)
							}
							if len(w.Paused()) != way.paused {
								t.Errorf("%s: paused are %v", c.reason, w.Paused())
							}
							passed(t, way.other, w)(answered) // destinations have limits for each
						}
						time.Sleep(time.Until(reported.Add(c.pause - time.Millisecond)))
					}
					for _, w := range crew.workers { // waits the rest out
						passed(t, way.call, w)(answered)
						if early := c.pause - time.Since(reported); early > 0 {
							t.Errorf("%s: made %s before the pause ended", c.reason, early)
						}
					}
				})
			})
		}
	}
}

// entering asks a worker for a call.
type entering func(t *testing.T, w *worker) (leave func(engine.Sent), hold *engine.Hold)

// passed makes a call that must pass.
func passed(t *testing.T, call entering, w *worker) (leave func(engine.Sent)) {
	t.Helper()
	leave, hold := call(t, w)
	if hold != nil {
		t.Fatalf("held: %+v", *hold)
	}
	return leave
}

// Repeated "not now" answers: the pause grows with each, however many sends were under way and
// received it, and is short again after a success.
func TestPausesWithoutATimeGrow(t *testing.T) {
	throttled := engine.Sent{Fate: connectors.FateThrottled, Code: "429", Took: time.Millisecond}
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 2, guards.Settings{})
		defer crew.close()
		pauseAfter := func(reported engine.Sent) time.Duration {
			var leaves []func(engine.Sent)
			for i := range 10 {
				leaves = append(leaves, passes(t, crew.workers[i%2], write(crm)))
			}
			time.Sleep(time.Millisecond)
			for _, leave := range leaves {
				leave(reported)
				time.Sleep(time.Millisecond)
			}
			began := time.Now()
			time.Sleep(600 * time.Millisecond) // published, and received by all
			for {
				leave, hold := crew.workers[1].Enter(t.Context(), write(crm))
				if hold == nil {
					leave(notMade)
					return time.Since(began).Round(time.Second)
				}
				time.Sleep(hold.For)
			}
		}
		for i, want := range []int{1, 2, 4, 8, 16} {
			if got := pauseAfter(throttled); got != time.Duration(want)*time.Second {
				t.Errorf("pause %d lasted %s, want %ds", i+1, got, want)
			}
		}
		pauseAfter(answered)
		time.Sleep(time.Second)
		if got := pauseAfter(throttled); got != time.Second {
			t.Errorf("after a success the pause lasted %s, want 1s", got)
		}
	})
}

// An unreadable note pauses for a minute and is then written anew.
func TestDamagedRateHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, guards.Settings{Rate: rate(10, time.Second)})
		defer crew.close()
		passes(t, crew.workers[0], write(crm))(answered)
		damage(t, crew.notes, "guard/rate/", "?")
		time.Sleep(time.Second)
		held(t, crew.workers[0], write(crm), "rate")
		if s, err := guards.Status(t.Context(), crew.notes); err != nil || len(s.Destinations) != 1 || len(s.Destinations[0].Damaged) != 1 {
			t.Errorf("status %+v, %v: want the damage named", s, err)
		}
		time.Sleep(time.Minute)
		passes(t, crew.workers[0], write(crm))(answered)
	})
}

// A send that waits inside for its permit must notice a pause that begins while it waits.
func TestPauseWhileWaitingForAPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, guards.Settings{Rate: rate(1, 900*time.Millisecond)})
		defer crew.close()
		first := passes(t, crew.workers[0], write(crm))
		go func() {
			time.Sleep(100 * time.Millisecond)
			first(engine.Sent{Fate: connectors.FateThrottled, RetryAfter: 10 * time.Second, Took: 1})
		}()
		if hold := held(t, crew.workers[0], write(crm), "rate"); hold.For < 8*time.Second {
			t.Errorf("held for %s, want until the pause ends", hold.For)
		}
	})
}
