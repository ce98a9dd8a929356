package guards_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/ledger"
)

func TestStopHoldsItsScope(t *testing.T) {
	other := ledger.Record{Tenant: "globex", Destination: "billing", Tool: "cards.charge"}
	cases := map[string]struct {
		reason string
		scope  guards.Scope
		holds  bool
	}{
		"all":              {"the zero scope is everything", guards.Scope{}, true},
		"tenant":           {"its tenant", guards.Scope{Tenant: "acme"}, true},
		"destination":      {"its destination", guards.Scope{Destination: crm}, true},
		"tool":             {"its tool", guards.Scope{Tool: "tickets.create"}, true},
		"exactly":          {"all three fit", guards.Scope{Tenant: "acme", Destination: crm, Tool: "tickets.create"}, true},
		"other tenant":     {"one part that does not fit", guards.Scope{Tenant: "globex", Destination: crm}, false},
		"other tool":       {"one part that does not fit", guards.Scope{Tenant: "acme", Tool: "tickets.delete"}, false},
		"swapped":          {"a tenant is no destination", guards.Scope{Tenant: crm, Destination: "acme"}, false},
		"joined otherwise": {"names must not run into each other", guards.Scope{Tenant: "acmecrm"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crew := newCrew(t, 1, guards.Settings{})
				defer crew.close()
				if err := guards.Stop(t.Context(), crew.notes, c.scope, "ada", "wrong prices"); err != nil {
					t.Fatal(err)
				}
				if !c.holds {
					passes(t, crew.workers[0], write(crm))(answered)
					return
				}
				if hold := held(t, crew.workers[0], write(crm), "stopped"); !strings.Contains(hold.Reason, "ada: wrong prices") {
					t.Errorf("%s: the reason %q does not say who and why", c.reason, hold.Reason)
				}
				if c.scope != (guards.Scope{}) {
					passes(t, crew.workers[0], other)(answered)
				}
			})
		})
	}
}

func TestStopAndReleaseTakeEffectEverywhereWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 5, guards.Settings{})
		defer crew.close()
		within := func(what string, done func(w *worker) bool) {
			t.Helper()
			began := time.Now()
			for i, w := range crew.workers {
				for !done(w) {
					if time.Since(began) > time.Second {
						t.Fatalf("%s: worker %d does not know it after a second", what, i)
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
		}
		pass := func(w *worker) bool {
			leave, hold := w.Enter(t.Context(), write(crm))
			if hold == nil {
				leave(answered)
			}
			return hold == nil
		}
		for i, w := range crew.workers { // each with a copy of another age
			passes(t, w, write(crm))(answered)
			time.Sleep(time.Duration(i) * 90 * time.Millisecond)
		}
		if err := guards.Stop(t.Context(), crew.notes, guards.Scope{Destination: crm}, "ada", "wrong prices"); err != nil {
			t.Fatal(err)
		}
		within("stop", func(w *worker) bool { return !pass(w) })
		for _, w := range crew.workers {
			if diff := cmp.Diff([]string{crm}, w.Paused()); diff != "" {
				t.Errorf("a stopped destination is not paused (-want +got):\n%s", diff)
			}
		}
		if err := guards.Release(t.Context(), crew.notes, guards.Scope{Destination: crm}, "bob", "corrected"); err != nil {
			t.Fatal(err)
		}
		within("release", pass)
		for _, w := range crew.workers {
			if got := w.Paused(); len(got) > 0 {
				t.Errorf("still paused after the release: %v", got)
			}
		}
	})
}

// A send that waits inside for its permit must notice a stop that is set while it waits.
func TestStopWhileWaitingForAPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, guards.Settings{Rate: rate(1, 900*time.Millisecond)})
		defer crew.close()
		w := crew.workers[0]
		passes(t, w, write(crm))(answered)
		go func() {
			time.Sleep(100 * time.Millisecond)
			if err := guards.Stop(t.Context(), crew.notes, guards.Scope{}, "ada", "now"); err != nil {
				t.Error(err)
			}
		}()
		held(t, w, write(crm), "stopped")
	})
}

// So must one that waits for the ledger's permission to probe.
func TestStopWhileWaitingToProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, breaking(guards.Breaker{Open: 10 * time.Second}))
		defer crew.close()
		w := crew.workers[0]
		crew.open(w)
		time.Sleep(11 * time.Second)
		w.Paused() // reads what is known
		w.link.slowDown(450 * time.Millisecond)
		go func() {
			time.Sleep(100 * time.Millisecond)
			if err := guards.Stop(t.Context(), crew.notes, guards.Scope{}, "ada", "now"); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(90 * time.Millisecond)
		held(t, w, write(crm), "stopped")
		w.link.slowDown(0)
	})
}

func TestStopsAreRecordedWithWhoAndWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes, scope := ledger.NewMemory(), guards.Scope{Tenant: "acme", Tool: "a/b\x00\xff#"}
		began := time.Now().Round(0)
		for i := range 8 {
			if err := guards.Stop(t.Context(), notes, scope, "ada", fmt.Sprintf("reason %d", i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if err := guards.Release(t.Context(), notes, scope, "bob", "good again"); err != nil {
				t.Fatal(err)
			}
		}
		if err := guards.Release(t.Context(), notes, scope, "bob", "once more"); !errors.Is(err, guards.ErrNotStopped) {
			t.Errorf("released what was released: %v", err)
		}
		if err := guards.Stop(t.Context(), notes, guards.Scope{}, "eve", "all of it"); err != nil {
			t.Fatal(err)
		}
		stops, err := guards.Stops(t.Context(), notes)
		if err != nil || len(stops) != 2 {
			t.Fatalf("%v, %v: want two stops", stops, err)
		}
		want := guards.Act{By: "eve", Reason: "all of it", At: began.Add(8 * time.Minute).UTC()}
		got := stops[0].Last()
		got.At = got.At.UTC()
		if diff := cmp.Diff(want, got); diff != "" || !stops[0].Active {
			t.Errorf("active %v, the last entry (-want +got):\n%s", stops[0].Active, diff)
		}
		if n := len(stops[1].Log); n != 10 || stops[1].Active || stops[1].Last().By != "bob" || stops[1].Log[8].Reason != "reason 7" {
			t.Errorf("history of the released stop: %+v; want its last ten entries", stops[1])
		}
	})
}

func TestStopWantsWhoAndWhy(t *testing.T) {
	cases := map[string]struct{ reason, by, why string }{
		"no name":     {"the name is required", " ", "because"},
		"no reason":   {"why is required", "ada", ""},
		"long reason": {"all workers read it twice a second", "ada", strings.Repeat("x", 501)},
		"long by":     {"likewise", strings.Repeat("x", 201), "because"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			notes := ledger.NewMemory()
			if err := guards.Stop(t.Context(), notes, guards.Scope{}, c.by, c.why); !errors.Is(err, guards.ErrIncomplete) {
				t.Errorf("%s: stop: %v", c.reason, err)
			}
			if err := guards.Release(t.Context(), notes, guards.Scope{}, c.by, c.why); !errors.Is(err, guards.ErrIncomplete) {
				t.Errorf("%s: release: %v", c.reason, err)
			}
			if stops, err := guards.Stops(t.Context(), notes); err != nil || len(stops) > 0 {
				t.Errorf("%s: recorded all the same: %v %v", c.reason, stops, err)
			}
		})
	}
}

// Never on stale knowledge: a ledger that fails or hangs holds every send, and lets them pass
// again when it answers.
func TestUnreadableStopsHold(t *testing.T) {
	cases := map[string]struct {
		reason string
		breaks func(*link)
		mends  func(*link)
	}{
		"fails": {"an error", func(l *link) { l.fail(errGone) }, func(l *link) { l.fail(nil) }},
		"hangs": {"no answer in time", func(l *link) { l.slowDown(time.Hour) }, func(l *link) { l.slowDown(0) }},
		"deaf": {"no answer and no end", func(l *link) { l.set(func(l *link) { l.deaf, l.slow = true, 30*time.Second }) },
			func(l *link) { l.set(func(l *link) { l.deaf, l.slow = false, 0 }) }},
		"slow": {"an answer that is too old when it comes", func(l *link) { l.slowDown(800 * time.Millisecond) }, func(l *link) { l.slowDown(0) }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crew := newCrew(t, 1, guards.Settings{})
				defer crew.close()
				w := crew.workers[0]
				passes(t, w, write(crm))(answered)
				c.breaks(w.link)
				broke := time.Now()
				for time.Since(broke) < 10*time.Second {
					asked := time.Now()
					leave, hold := w.Enter(t.Context(), write(crm))
					if took := time.Since(asked); took > 3*time.Second {
						t.Fatalf("%s: Enter took %s", c.reason, took)
					}
					if hold == nil {
						leave(answered)
						if age := time.Since(broke); age > time.Second {
							t.Fatalf("%s: passed %s after the ledger was last read", c.reason, age)
						}
					}
					time.Sleep(20 * time.Millisecond)
				}
				held(t, w, write(crm), "stopped")
				if diff := cmp.Diff([]string{crm}, w.Paused()); diff != "" {
					t.Errorf("%s: not paused (-want +got):\n%s", c.reason, diff)
				}
				c.mends(w.link)
				time.Sleep(31 * time.Second)
				passes(t, w, write(crm))(answered)
			})
		})
	}
}

// A damaged stop never lets a stopped send pass.
func TestDamagedStopHolds(t *testing.T) {
	for name, value := range map[string]string{"no JSON": "{", "empty": "{}", "another type": `{"released":"yes"}`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crew := newCrew(t, 1, guards.Settings{})
				defer crew.close()
				scope := guards.Scope{Tenant: "acme"}
				if err := guards.Stop(t.Context(), crew.notes, scope, "ada", "why"); err != nil {
					t.Fatal(err)
				}
				damage(t, crew.notes, "guard/stop/", value)
				held(t, crew.workers[0], write(crm), "stopped")
				if err := guards.Release(t.Context(), crew.notes, scope, "bob", "mended"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				passes(t, crew.workers[0], write(crm))(answered)
			})
		})
	}
}

// damage overwrites the one note whose name has that prefix.
func damage(t *testing.T, notes ledger.Documents, prefix, value string) {
	t.Helper()
	found, _, err := notes.Notes(t.Context(), prefix)
	if err != nil || len(found) != 1 {
		t.Fatalf("notes under %s: %v, %v; want one", prefix, found, err)
	}
	found[0].Value = []byte(value)
	if _, err := notes.SetNote(t.Context(), found[0]); err != nil {
		t.Fatal(err)
	}
}

func TestNamesOfAnyKindAreDistinguished(t *testing.T) {
	names := []string{"a", "a/", "a b", "a+b", "a%20b", "A", "ä", "\xff", "\xfe", "\x00", strings.Repeat("x", 5000), strings.Repeat("x", 5001), "#", "a/stop/b"}
	synctest.Test(t, func(t *testing.T) {
		notes := ledger.NewMemory()
		set := map[string]guards.Settings{}
		for _, name := range names {
			set[name] = guards.Settings{Concurrency: 1, Rate: rate(1000, time.Second)}
		}
		g := guards.New(notes, nil, &guards.Options{Destinations: set})
		defer g.Close()
		for _, name := range names { // each has a slot of its own
			if _, hold := g.Enter(t.Context(), write(name)); hold != nil {
				t.Fatalf("%.20q: held by %s: %s", name, hold.Rule, hold.Reason)
			}
		}
		all, _, err := notes.Notes(t.Context(), "guard/")
		if err != nil || len(all) != 2*len(names) {
			t.Fatalf("%d notes, %v; want two for each of %d destinations", len(all), err, len(names))
		}
		status, err := guards.Status(t.Context(), notes)
		if err != nil || len(status.Destinations) != len(names) {
			t.Errorf("the status has %d destinations, %v; want %d", len(status.Destinations), err, len(names))
		}
	})
}
