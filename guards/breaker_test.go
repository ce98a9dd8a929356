package guards_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

func breaking(b guards.Breaker) guards.Settings { return guards.Settings{Breaker: b} }

// open opens the destination's breaker through a worker.
func (c *crew) open(w *worker) {
	c.t.Helper()
	for range 5 {
		passes(c.t, w, write(crm))(unknown)
	}
	held(c.t, w, write(crm), "breaker")
	synctest.Wait()
}

func TestWhatOpensTheBreaker(t *testing.T) {
	made := func(fate connectors.Fate, code string) engine.Sent {
		return engine.Sent{Fate: fate, Code: code, Took: time.Millisecond}
	}
	repeat := func(n int, s ...engine.Sent) (all []engine.Sent) {
		for range n {
			all = append(all, s...)
		}
		return all
	}
	cases := map[string]struct {
		reason string
		sent   []engine.Sent
		set    guards.Breaker
		opens  bool
	}{
		"unknown":            {"it is unknown what it does", repeat(5, made(connectors.FateUnknown, "")), guards.Breaker{}, true},
		"not sent":           {"it cannot be reached", repeat(5, made(connectors.FateNotSent, "")), guards.Breaker{}, true},
		"too few":            {"four failures are not five", repeat(4, made(connectors.FateUnknown, "")), guards.Breaker{}, false},
		"refused":            {"the caller's fault", repeat(50, made(connectors.FateRefused, "422")), guards.Breaker{}, false},
		"refused with a 5xx": {"for some destinations 550 is the caller's fault too", repeat(50, made(connectors.FateRefused, "550")), guards.Breaker{}, false},
		"not made":           {"the destination was not asked", repeat(50, notMade), guards.Breaker{}, false},
		"a third answered":   {"it does work", repeat(50, made(connectors.FateUnknown, ""), made(connectors.FateUnknown, ""), answered), guards.Breaker{}, false},
		"a fifth answered":   {"most sends fail", append(repeat(4, made(connectors.FateUnknown, "")), answered, made(connectors.FateUnknown, "")), guards.Breaker{}, true},
		"fewer than half":    {"most succeed", repeat(20, answered, made(connectors.FateUnknown, ""), answered), guards.Breaker{}, false},
		"breaks down":        {"many in a row, whatever was before", append(repeat(500, answered), repeat(20, made(connectors.FateUnknown, ""))...), guards.Breaker{}, true},
		"own setting":        {"as the operator says", repeat(2, made(connectors.FateUnknown, "")), guards.Breaker{Failures: 2}, true},
		"off":                {"as the operator says", repeat(50, made(connectors.FateUnknown, "")), guards.Breaker{Failures: -1}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crew := newCrew(t, 1, breaking(c.set))
				defer crew.close()
				for i, s := range c.sent {
					leave, hold := crew.workers[0].Enter(t.Context(), write(crm))
					if hold != nil {
						if c.opens && i >= len(c.sent)-3 {
							return
						}
						t.Fatalf("%s: send %d was held: %s", c.reason, i, hold.Reason)
					}
					leave(s)
				}
				_, hold := crew.workers[0].Enter(t.Context(), write(crm))
				if got := hold != nil && hold.Rule == "breaker"; got != c.opens {
					t.Errorf("%s: open %v (%+v), want %v", c.reason, got, hold, c.opens)
				}
			})
		})
	}
}

func TestThrottledDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, breaking(guards.Breaker{}))
		defer crew.close()
		for range 10 {
			passes(t, crew.workers[0], write(crm))(engine.Sent{Fate: connectors.FateThrottled, RetryAfter: 500 * time.Millisecond, Took: 1})
		}
		passes(t, crew.workers[0], write(crm))(answered)
	})
}

func TestOldFailuresDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, breaking(guards.Breaker{Window: time.Minute}))
		defer crew.close()
		for range 20 { // one every twenty seconds: at most four within a minute
			passes(t, crew.workers[0], write(crm))(unknown)
			time.Sleep(20 * time.Second)
		}
		passes(t, crew.workers[0], write(crm))(answered)
	})
}

func TestAnOpenBreakerStopsAllWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 6, breaking(guards.Breaker{}))
		defer crew.close()
		for i, w := range crew.workers {
			passes(t, w, write(crm))(answered)
			time.Sleep(time.Duration(i) * 70 * time.Millisecond)
		}
		crew.open(crew.workers[3])
		time.Sleep(time.Second)
		for _, w := range crew.workers {
			if hold := held(t, w, write(crm), "breaker"); hold.For < 28*time.Second || hold.For > 30*time.Second {
				t.Errorf("held for %s, want until the probe in half a minute", hold.For)
			}
			if len(w.Paused()) != 1 {
				t.Error("the destination is not paused")
			}
		}
		passes(t, crew.workers[0], write("billing"))(answered) // no other destination is held
	})
}

// probing asks through all workers at once and returns the leaves of the sends that passed.
func (c *crew) probing() []func(engine.Sent) {
	var mu sync.Mutex
	var passed []func(engine.Sent)
	var all sync.WaitGroup
	for _, w := range c.workers {
		for range 4 {
			all.Go(func() {
				leave, hold := w.Enter(c.t.Context(), write(crm))
				mu.Lock()
				defer mu.Unlock()
				if hold == nil {
					passed = append(passed, leave)
				} else if hold.Rule != "breaker" {
					c.t.Errorf("held by %s: %s", hold.Rule, hold.Reason)
				}
			})
		}
	}
	all.Wait()
	return passed
}

func TestOneProbeOverAllWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 5, breaking(guards.Breaker{}))
		defer crew.close()
		crew.open(crew.workers[0])
		for i, want := range []int{30, 60, 120, 240, 300, 300} {
			time.Sleep(time.Duration(want-2) * time.Second)
			if passed := crew.probing(); len(passed) != 0 {
				t.Fatalf("round %d: %d sends passed while it was open", i, len(passed))
			}
			time.Sleep(2 * time.Second)
			passed := crew.probing()
			if len(passed) != 1 {
				t.Fatalf("round %d: %d sends passed as probes, want one", i, len(passed))
			}
			if more := crew.probing(); len(more) != 0 {
				t.Fatalf("round %d: %d more passed during the probe", i, len(more))
			}
			if s, err := guards.Status(t.Context(), crew.notes); err != nil || s.Destinations[0].Breaker.State != "half-open" || s.Destinations[0].Breaker.Probe == "" {
				t.Errorf("status %+v, %v: want half-open, and who probes", s, err)
			}
			passed[0](unknown)
			synctest.Wait()
		}
		time.Sleep(5 * time.Minute)
		passed := crew.probing()
		if len(passed) != 1 {
			t.Fatalf("%d sends passed as probes, want one", len(passed))
		}
		passed[0](answered)
		time.Sleep(time.Second)
		if passed := crew.probing(); len(passed) != 20 {
			t.Errorf("after a probe that succeeded %d of 20 sends passed", len(passed))
		}
	})
}

// Closed means closed for all: earlier failures no longer count in any worker.
func TestAfterAnOpenPeriodAllBeginAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 2, breaking(guards.Breaker{Open: time.Second}))
		defer crew.close()
		for range 4 {
			passes(t, crew.workers[1], write(crm))(unknown)
		}
		crew.open(crew.workers[0])
		time.Sleep(600 * time.Millisecond)
		held(t, crew.workers[1], write(crm), "breaker")
		time.Sleep(600 * time.Millisecond)
		passes(t, crew.workers[0], write(crm))(answered)
		time.Sleep(time.Second)
		for i, w := range crew.workers {
			for range 4 {
				leave, hold := w.Enter(t.Context(), write(crm))
				if hold != nil {
					t.Fatalf("worker %d: opened by failures from before: %s", i, hold.Reason)
				}
				leave(unknown)
			}
		}
	})
}

func TestAProbeThatSaysNothingLetsAnotherOneProbe(t *testing.T) {
	cases := map[string]struct {
		reason string
		end    func(w *worker, leave func(engine.Sent))
		after  time.Duration
	}{
		"not made":  {"the announcement failed", func(_ *worker, leave func(engine.Sent)) { leave(notMade) }, 2 * time.Second},
		"throttled": {"whether it works was not seen", func(_ *worker, leave func(engine.Sent)) { leave(engine.Sent{Fate: connectors.FateThrottled, Took: 1}) }, 2 * time.Second},
		"dead":      {"its lease ends with the send time-out", func(w *worker, _ func(engine.Sent)) { w.die() }, 46 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crew := newCrew(t, 2, breaking(guards.Breaker{}))
				defer crew.close()
				crew.open(crew.workers[0])
				time.Sleep(31 * time.Second)
				leave := passes(t, crew.workers[0], write(crm))
				held(t, crew.workers[1], write(crm), "breaker")
				c.end(crew.workers[0], leave)
				time.Sleep(c.after)
				passes(t, crew.workers[1], write(crm))(answered)
				time.Sleep(time.Second)
				passes(t, crew.workers[1], write(crm))(answered)
			})
		})
	}
}

// A write that reads for long before its send returns its permission and asks again at once: it
// is the one that may probe, however often.
func TestAProbeThatIsNotMadeYetMayAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 2, breaking(guards.Breaker{}))
		defer crew.close()
		crew.open(crew.workers[0])
		time.Sleep(31 * time.Second)
		leave := passes(t, crew.workers[0], write(crm))
		for range 100 { // longer than one lease
			time.Sleep(600 * time.Millisecond)
			leave(notMade)
			synctest.Wait()
			held(t, crew.workers[1], write(crm), "breaker")
			leave = passes(t, crew.workers[0], write(crm))
		}
		held(t, crew.workers[0], write(crm), "breaker")
		leave(answered)
		time.Sleep(time.Second)
		passes(t, crew.workers[1], write(crm))(answered)
	})
}

// A trip that could not be written at once is written when the ledger answers again, and until
// then the worker itself holds.
func TestATripIsPublishedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 2, breaking(guards.Breaker{Open: time.Hour}))
		defer crew.close()
		w := crew.workers[0]
		var leaves []func(engine.Sent)
		for range 5 {
			leaves = append(leaves, passes(t, w, write(crm)))
		}
		w.link.fail(errGone)
		for _, leave := range leaves {
			leave(unknown)
		}
		time.Sleep(10 * time.Second)
		passes(t, crew.workers[1], write(crm))(answered)
		w.link.fail(nil)
		held(t, w, write(crm), "breaker")
		time.Sleep(10 * time.Second) // maintenance is retried more rarely while it fails
		held(t, crew.workers[1], write(crm), "breaker")
	})
}

func TestDamagedBreakerIsOpenForAWhile(t *testing.T) {
	for _, value := range []string{"x", `{"until":7}`} {
		synctest.Test(t, func(t *testing.T) {
			crew := newCrew(t, 1, breaking(guards.Breaker{}))
			defer crew.close()
			crew.open(crew.workers[0])
			time.Sleep(31 * time.Second)
			passes(t, crew.workers[0], write(crm))(answered)
			synctest.Wait()
			damage(t, crew.notes, "guard/breaker/", value)
			time.Sleep(time.Second)
			held(t, crew.workers[0], write(crm), "breaker")
			time.Sleep(30 * time.Second)
			passes(t, crew.workers[0], write(crm))(answered)
			time.Sleep(time.Second)
			passes(t, crew.workers[0], write(crm))(answered)
		})
	}
}

// A leave that is called twice counts once.
func TestLeaveCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, guards.Settings{Concurrency: 2})
		defer crew.close()
		w := crew.workers[0]
		first := passes(t, w, write(crm))
		for range 10 {
			first(unknown)
		}
		leaves := fmt.Sprintf("%p %p", passes(t, w, write(crm)), passes(t, w, write(crm)))
		if _, hold := w.Enter(t.Context(), write(crm)); hold == nil {
			t.Errorf("a third send passed beside %s", leaves)
		}
	})
}

// A send that was not answered and that a read then verified is no failure.
func TestVerifiedEffectsCountAsSuccesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, 1, breaking(guards.Breaker{}))
		defer c.close()
		for range 100 {
			passes(t, c.workers[0], write(crm))(unknown)
			c.workers[0].confirmed(write(crm))
		}
		passes(t, c.workers[0], write(crm))(answered)
	})
}

// A refused login holds every send to the destination at once, even if the breaker is switched
// off, and one probe at a time tests whether it works.
func TestARefusedLoginHoldsTheDestination(t *testing.T) {
	login := engine.Sent{Fate: connectors.FateLogin, Code: "401", Took: time.Millisecond}
	for name, set := range map[string]guards.Breaker{"default": {}, "switched off": {Failures: -1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, 2, breaking(set))
				defer c.close()
				at := time.Now()
				passes(t, c.workers[0], write(crm))(login)
				time.Sleep(time.Second)
				for _, w := range c.workers {
					held(t, w, write(crm), "login")
					if len(w.Paused()) != 1 {
						t.Error("the destination is not paused")
					}
				}
				time.Sleep(30 * time.Second)
				probe := passes(t, c.workers[1], write(crm))
				held(t, c.workers[0], write(crm), "login")
				probe(login)
				time.Sleep(time.Second)
				s, err := guards.Status(t.Context(), c.notes)
				if err != nil {
					t.Fatal(err)
				}
				if got := s.Destinations[0].Breaker.Login; got.Before(at) || got.After(at.Add(time.Second)) {
					t.Errorf("the login is refused since %s, want %s", got, at)
				}
				time.Sleep(time.Minute)
				passes(t, c.workers[0], write(crm))(engine.Sent{Fate: connectors.FateRefused, Code: "422", Took: 1})
				time.Sleep(time.Second)
				for _, w := range c.workers {
					passes(t, w, write(crm))(answered)
				}
				if s, err = guards.Status(t.Context(), c.notes); err != nil || !s.Destinations[0].Breaker.Login.IsZero() {
					t.Errorf("%+v, %v; want the login to work", s.Destinations, err)
				}
			})
		})
	}
}

// A destination that answers no send, and of which a read verifies every effect, is not held for
// long once the breaker has opened: the effect of the probe closes it.
func TestAVerifiedEffectOfAProbeClosesTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, 1, breaking(guards.Breaker{}))
		defer c.close()
		w := c.workers[0]
		old, recovered := write(crm), write(crm)
		old.LastSend = time.Now()
		recovered.LostSend, recovered.LastSend = time.Now(), time.Now().Add(time.Minute) // the end of its lease
		time.Sleep(time.Second)
		c.open(w)
		time.Sleep(2 * time.Second)
		for _, sent := range []ledger.Record{old, recovered} { // before it opened
			w.confirmed(sent)
			time.Sleep(time.Second)
			held(t, w, write(crm), "breaker")
		}
		time.Sleep(30 * time.Second)
		probe := write(crm)
		probe.LastSend = time.Now()
		passes(t, w, probe)(unknown)
		time.Sleep(time.Second)
		held(t, w, write(crm), "breaker")
		w.confirmed(probe)
		time.Sleep(time.Second)
		for range 20 {
			passes(t, w, write(crm))(unknown)
			w.confirmed(write(crm))
		}
	})
}

// The credentials of a read are refused: nothing is sent, and status reports since when, until a
// read or a probe is accepted.
func TestARefusedLoginOfAReadHoldsTheDestination(t *testing.T) {
	for name, set := range map[string]guards.Breaker{"default": {}, "switched off": {Failures: -1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, 2, breaking(set))
				defer c.close()
				login := func() time.Time {
					t.Helper()
					time.Sleep(time.Second)
					s, err := guards.Status(t.Context(), c.notes)
					if err != nil {
						t.Fatal(err)
					}
					return s.Destinations[0].Breaker.Login
				}
				w := c.workers[0]
				at := time.Now()
				w.readLogin(verify.Unavailable, "401")
				first := login()
				w.readLogin(verify.Unavailable, "401")
				if got := login(); !got.Equal(first) || got.Before(at) || got.After(at.Add(time.Second)) {
					t.Errorf("the login is refused since %s and then %s, want %s", first, got, at)
				}
				held(t, c.workers[1], write(crm), "login")
				if hold := c.workers[1].ReadHeld(write(crm)); hold == nil || hold.Rule != "login" {
					t.Errorf("reads are held by %+v", hold)
				}
				time.Sleep(2 * time.Minute)
				if hold := c.workers[1].ReadHeld(write(crm)); hold != nil {
					t.Errorf("no read may find out whether the login works: %+v", hold)
				}
				if hold := c.workers[1].ReadHeld(write(crm)); hold == nil || hold.Rule != "login" {
					t.Errorf("while one read finds out others are held by %+v", hold)
				}
				passes(t, c.workers[1], write(crm))(answered) // no send shows whether reads are accepted
				if got := login(); !got.Equal(first) {
					t.Errorf("after a send the login of reads is refused since %s, want %s", got, first)
				}
				c.workers[1].readLogin(verify.Verified, "")
				if got := login(); !got.IsZero() {
					t.Errorf("a read was accepted, and the login is refused since %s", got)
				}
				passes(t, w, write(crm))(engine.Sent{Fate: connectors.FateLogin, Code: "401", Took: 1})
				w.readLogin(verify.Verified, "") // with the credentials of reads
				if login().IsZero() {
					t.Error("the login of sends is refused, and a read is reported to show that it works")
				}
				held(t, w, write(crm), "login")
			})
		})
	}
}

// A breaker that a refused read opened closes by answered sends if no read follows them soon: for
// a kind that cannot be read, or that is read in batches.
func TestABreakerOfReadsClosesWithoutReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, 1, breaking(guards.Breaker{}))
		defer c.close()
		w := c.workers[0]
		w.readLogin(verify.Unavailable, "401")
		time.Sleep(time.Second)
		sent := 0
		for range 24 * 60 * 2 {
			time.Sleep(30 * time.Second)
			if leave, hold := w.Enter(t.Context(), write(crm)); hold == nil {
				leave(engine.Sent{Fate: connectors.FateAnswered, Took: time.Millisecond, Unread: true})
				sent++
			}
		}
		if sent < 1000 {
			t.Errorf("%d of %d sends passed in a day, all answered", sent, 24*60*2)
		}
	})
}

// A read is accepted, and right after it one is refused, before the first is published. The later
// one counts.
func TestTheLaterReadCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, 1, breaking(guards.Breaker{}))
		defer c.close()
		w := c.workers[0]
		w.readLogin(verify.Unavailable, "401")
		time.Sleep(time.Second)
		w.link.slowDown(100 * time.Millisecond)
		w.readLogin(verify.Verified, "")
		w.readLogin(verify.Unavailable, "401")
		time.Sleep(2 * time.Second)
		held(t, w, write(crm), "login")
	})
}
