package guards_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
)

func TestConcurrencyIsBoundedOverAllWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		reason         string
		limit, workers int
		each           int
	}{
		"one":               {"strictly one after another", 1, 4, 3},
		"fewer than asks":   {"the usual case", 5, 3, 8},
		"more than workers": {"each may have several", 20, 3, 16},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crew := newCrew(t, c.workers, guards.Settings{Concurrency: c.limit})
				defer crew.close()
				log := &sendings{}
				crew.hammer(log, c.each, 30*time.Second, 100*time.Millisecond, func() engine.Sent { return answered })
				if log.most > c.limit {
					t.Errorf("%s: %d sends under way at once, at most %d", c.reason, log.most, c.limit)
				}
				could := c.limit * 300
				if len(log.at)*10 < could*7 {
					t.Errorf("%s: only %d sends where %d were possible", c.reason, len(log.at), could)
				}
				sets := 0
				for _, w := range crew.workers {
					_, n := w.link.counted()
					sets += n
				}
				if sets*10 > len(log.at)+200 {
					t.Errorf("%s: %d notes were written for %d sends", c.reason, sets, len(log.at))
				}
			})
		})
	}
}

func TestNoBoundCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, guards.Settings{})
		defer crew.close()
		log := &sendings{}
		crew.hammer(log, 16, 10*time.Second, time.Millisecond, func() engine.Sent { return answered })
		reads, sets := crew.workers[0].link.counted()
		if sets != 0 || reads > 21 {
			t.Errorf("%d reads and %d writes of notes for %d sends; want two reads a second and no write", reads, sets, len(log.at))
		}
	})
}

func TestSlotsOfADeadWorkerComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 2, guards.Settings{Concurrency: 2}, connectors.Profile{Kind: "ticket", SendTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second})
		defer crew.close()
		passes(t, crew.workers[0], write(crm))
		passes(t, crew.workers[0], write(crm))
		held(t, crew.workers[1], write(crm), "busy")
		if len(crew.workers[1].Paused()) != 1 {
			t.Error("all slots are another one's, and the destination is not paused")
		}
		time.Sleep(time.Minute) // alive: its lease is renewed as long as it takes
		held(t, crew.workers[1], write(crm), "busy")
		crew.workers[0].die()
		died := time.Now()
		for {
			leave, hold := crew.workers[1].Enter(t.Context(), write(crm))
			if hold == nil {
				leave(answered)
				break
			}
			time.Sleep(hold.For)
		}
		// A send of the dead worker can have begun as it died, after a stall of 15 s.
		if took := time.Since(died); took < 20*time.Second || took > 37*time.Second {
			t.Errorf("its slots came back after %s; want not before its sends ended, and soon after", took)
		}
	})
}

func TestUnusedSlotsGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 2, guards.Settings{Concurrency: 3})
		defer crew.close()
		long := passes(t, crew.workers[0], write(crm))
		for range 2 {
			passes(t, crew.workers[0], write(crm))(answered)
			passes(t, crew.workers[0], write(crm))(answered)
		}
		time.Sleep(3 * time.Second)
		one, two := passes(t, crew.workers[1], write(crm)), passes(t, crew.workers[1], write(crm))
		held(t, crew.workers[1], write(crm), "busy")
		long(answered)
		one(answered)
		two(answered)
		time.Sleep(3 * time.Second)
		s, err := guards.Status(t.Context(), crew.notes)
		if err != nil || len(s.Destinations) != 1 || s.Destinations[0].Limit != 3 || s.Destinations[0].InUse() != 0 {
			t.Errorf("status %+v, %v: want no slot taken of three", s, err)
		}
	})
}

func TestClosedGivesBackAndHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 2, guards.Settings{Concurrency: 1})
		defer crew.close()
		passes(t, crew.workers[0], write(crm))(answered)
		if err := crew.workers[0].Close(); err != nil {
			t.Fatal(err)
		}
		held(t, crew.workers[0], write(crm), "stopped")
		passes(t, crew.workers[1], write(crm))(answered)
	})
}

// A slot whose lease cannot be renewed is not used for a send that may outlast it.
func TestALeaseOutlastsItsSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 2, guards.Settings{Concurrency: 1})
		defer crew.close()
		w := crew.workers[0]
		passes(t, w, write(crm))(answered)
		w.link.set(func(l *link) { l.readOnly = true })
		var last time.Time
		for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(100 * time.Millisecond) {
			if leave, hold := w.Enter(t.Context(), write(crm)); hold == nil {
				leave(answered)
				last = time.Now()
			}
		}
		for {
			leave, hold := crew.workers[1].Enter(t.Context(), write(crm))
			if hold == nil {
				leave(answered)
				break
			}
			time.Sleep(hold.For)
		}
		if lasted := time.Since(last); lasted < 45*time.Second {
			t.Errorf("a send could last only %s under its slot, want the send time-out and a stall", lasted)
		}
	})
}

func TestGivingUpWhileWaitingTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, guards.Settings{Concurrency: 1, Rate: rate(1, 800*time.Millisecond)})
		defer crew.close()
		w := crew.workers[0]
		leave := passes(t, w, write(crm))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, hold := w.Enter(ctx, write(crm)); hold == nil || hold.Rule != "busy" {
			t.Fatalf("%+v: want it held by busy", hold)
		}
		leave(answered)
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, hold := w.Enter(ctx, write(crm)); hold == nil || hold.Rule != "rate" {
			t.Fatalf("%+v: want it held by rate", hold)
		}
		passes(t, w, write(crm))(answered) // neither slot nor permit is lost
	})
}

func TestDamagedSlotsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 1, guards.Settings{Concurrency: 4})
		defer crew.close()
		passes(t, crew.workers[0], write(crm))(answered)
		time.Sleep(5 * time.Second)
		damage(t, crew.notes, "guard/slots/", "[]")
		time.Sleep(time.Second)
		held(t, crew.workers[0], write(crm), "busy")
		time.Sleep(time.Minute)
		passes(t, crew.workers[0], write(crm))(answered)
	})
}

// Many workers that want the same note at once must not keep the ledger busy with lost races.
func TestStormsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crew := newCrew(t, 30, guards.Settings{Concurrency: 15, Rate: rate(2000, time.Second)})
		defer crew.close()
		for _, w := range crew.workers {
			w.link.slowDown(2 * time.Millisecond)
		}
		log := &sendings{}
		const during = 5
		crew.hammer(log, 2, during*time.Second, 10*time.Millisecond, func() engine.Sent { return answered })
		reads, sets := 0, 0
		for _, w := range crew.workers {
			r, s := w.link.counted()
			reads, sets = reads+r, sets+s
		}
		t.Logf("%d sends, %d reads and %d writes of notes by %d workers", len(log.at), reads, sets, len(crew.workers))
		if perWorker := (reads + sets) / during / len(crew.workers); perWorker > 40 {
			t.Errorf("each worker asked the ledger %d times a second", perWorker)
		}
		if log.most > 15 {
			t.Errorf("%d sends under way at once, at most 15", log.most)
		}
	})
}
