package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// restored gives the bench a ledger without what do does in the meantime, as a restore does: an engine
// on a ledger that is lost then.
func (b *bench) restored(do func(e *engine.Engine)) {
	b.t.Helper()
	kept, since := b.ledger, time.Now()
	b.ledger = ledger.NewMemory()
	e := b.newEngine(nil)
	time.Sleep(time.Minute)
	do(e)
	e.Close()
	time.Sleep(time.Minute)
	b.ledger = kept
	if _, err := ledger.RecordRestore(b.t.Context(), b.ledger, since, "ann", "the disk failed"); err != nil {
		b.t.Fatal(err)
	}
	time.Sleep(time.Second)
}

func doOn(t *testing.T, e *engine.Engine, w intent.WriteIntent) engine.Outcome {
	t.Helper()
	out, err := e.Do(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A caller asks again for what was done in the missing time, or asks for the first time: the write is
// read before it is sent, and none is made twice.
func TestAskedAgainAfterARestore(t *testing.T) {
	for name, c := range map[string]struct {
		write         intent.WriteType
		before        bool // there is a record
		unstamped     bool
		lost, unsent  ledger.Status // when it was sent in the missing time, and when it was not
		effects, none int           // of this write, then
		reason        string
	}{
		"create":            {intent.Create, false, false, ledger.Verified, ledger.Verified, 1, 1, "its stamp shows whose the record is, and that none is there"},
		"create, no stamps": {intent.Create, false, true, ledger.StatusReview, ledger.Verified, 1, 1, "nothing shows whose the record is"},
		"update":            {intent.Update, true, false, ledger.Verified, ledger.StatusReview, 1, 0, "another actor may have changed the record since it was updated"},
		"upsert":            {intent.Upsert, true, false, ledger.Verified, ledger.StatusReview, 1, 0, "as for an update"},
		"delete":            {intent.Delete, true, false, ledger.Verified, ledger.StatusReview, 1, 0, "another actor may have made the record anew"},
	} {
		for _, class := range orders.Classes() {
			for _, sent := range []bool{true, false} {
				t.Run(name+"/"+string(class)+map[bool]string{true: "/sent", false: "/not sent"}[sent], func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						o := class.Options()
						o.Unique = o.Unique || c.write == intent.Upsert
						o.Stamps = !c.unstamped
						b := newBench(t, o, nil)
						if c.before {
							b.seed(intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5), "currency": "EUR"}, "")
						}
						had := len(b.effects())
						b.restored(func(e *engine.Engine) {
							if sent {
								if out := doOn(t, e, order("A-1", c.write)); out.Status != ledger.Verified {
									t.Fatalf("in the missing time: %+v", out)
								}
							}
						})
						id := b.do(order("A-1", c.write)).ID
						b.work(2 * time.Hour)
						out := b.do(order("A-1", c.write))
						want, effects := c.lost, c.effects
						if !sent {
							want, effects = c.unsent, c.none
						}
						if got := len(b.effects()) - had; out.Status != want || got != effects {
							t.Errorf("%s with %d effects; want %s with %d: %s%s", out.Status, got, want, effects, c.reason, b.life(id))
						}
					})
				})
			}
		}
	}
}

// What was open when the backup was made may have been done since.
func TestOpenAtARestore(t *testing.T) {
	held := order("A-1", intent.Create)
	held.Risk = intent.RiskApprove
	late := order("A-1", intent.Create)
	late.Deadline = time.Date(2000, 1, 1, 0, 0, 30, 0, time.UTC) // synctest begins with 2000
	asks := func(e *engine.Engine, w intent.WriteIntent) error {
		out, err := e.Do(context.Background(), w)
		if err == nil && out.Status == ledger.StatusHeld {
			_, err = e.Resolve(context.Background(), "acme", out.ID, engine.Decision{Word: engine.WordApprove, By: "ann", Reason: "r"})
		}
		return err
	}
	for name, c := range map[string]struct {
		w    intent.WriteIntent
		sent bool
		word engine.Word // the decision after the restore
		want ledger.Status
	}{
		"queued, sent":                   {order("A-1", intent.Create), true, "", ledger.Verified},
		"queued, not sent":               {order("A-1", intent.Create), false, "", ledger.Verified},
		"queued, sent, late":             {late, true, "", ledger.Verified},
		"queued, not sent, late":         {late, false, "", ledger.NotApplied},
		"held, approved then":            {held, true, engine.WordApprove, ledger.Verified},
		"held, approved then, denied":    {held, true, engine.WordDeny, ledger.Verified},
		"held, not approved":             {held, false, engine.WordApprove, ledger.Verified},
		"held, not approved, and denied": {held, false, engine.WordDeny, ledger.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				id := b.enqueue(c.w)
				b.restored(func(e *engine.Engine) {
					if c.sent {
						w := c.w
						w.Deadline = time.Time{} // it is another name for the same write there
						if err := asks(e, w); err != nil {
							t.Fatal(err)
						}
					}
				})
				decide := func() error {
					_, err := b.engine.Resolve(t.Context(), "acme", id, engine.Decision{Word: c.word, By: "bob", Reason: "r"})
					return err
				}
				if c.word != "" {
					if err := decide(); !errors.Is(err, engine.ErrChanged) {
						t.Fatalf("a decision before the read: %v; want it refused%s", err, b.life(id))
					}
				}
				b.work(2 * time.Hour)
				if c.word != "" && !c.sent {
					if got := b.state(id); got.State != ledger.Held || len(b.effects()) != 0 {
						t.Fatalf("%s after the read, want it held again%s", got.Phase(), b.life(id))
					}
					if err := decide(); err != nil {
						t.Fatal(err)
					}
					b.work(2 * time.Hour)
				}
				effects := 1
				if c.want == ledger.NotApplied || c.want == ledger.Denied {
					effects = 0
				}
				if got := b.state(id); got.Status() != c.want || len(b.effects()) != effects {
					t.Errorf("%s with %d effects, want %s with %d%s", got.Phase(), len(b.effects()), c.want, effects, b.life(id))
				}
			})
		})
	}
}

// Where no read shows whether the effect is there, a reviewer decides, unless the destination
// deduplicates by our key.
func TestAskedAgainAfterARestoreUnseen(t *testing.T) {
	keyed := order("A-1", intent.Create)
	keyed.IdempotencyKey = "wire:A-1"
	for name, c := range map[string]struct {
		w       intent.WriteIntent
		change  func(*connectors.Profile)
		want    ledger.Status
		effects int
	}{
		"irreversible":                     {order("A-1", intent.Create), func(p *connectors.Profile) { p.Irreversible = []intent.WriteType{intent.Create} }, ledger.StatusReview, 0},
		"write-only":                       {order("A-1", intent.Create), func(p *connectors.Profile) { *p = connectors.Profile{WriteOnly: true} }, ledger.StatusReview, 0},
		"write-only, deduplicates":         {order("A-1", intent.Create), func(p *connectors.Profile) { *p = windowed(connectors.Profile{WriteOnly: true}) }, ledger.Reported, 1},
		"irreversible, deduplicates":       {order("A-1", intent.Create), func(p *connectors.Profile) { *p = windowed(*p); p.Irreversible = []intent.WriteType{intent.Create} }, ledger.Verified, 1},
		"an operation, write-only":         {keyed, func(p *connectors.Profile) { *p = windowed(connectors.Profile{WriteOnly: true}) }, ledger.StatusReview, 0},
		"an operation, fresh keys":         {keyed, func(p *connectors.Profile) { p.FreshKeys = true }, ledger.StatusReview, 0},
		"an operation under the known key": {keyed, nil, ledger.Verified, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				d := b.world.Destination()
				if p := d.Profiles[orders.Kind]; c.change != nil {
					c.change(&p)
					d.Profiles = map[string]connectors.Profile{orders.Kind: p}
				}
				b.restored(func(*engine.Engine) {})
				b.engine = b.engineOn(b.ledger, d, nil)
				id := b.do(c.w).ID
				b.work(2 * time.Hour)
				if out := b.do(c.w); out.Status != c.want || len(b.effects()) != c.effects {
					t.Errorf("%s with %d effects, want %s with %d%s", out.Status, len(b.effects()), c.want, c.effects, b.life(id))
				}
			})
		})
	}
}

func windowed(p connectors.Profile) connectors.Profile {
	p.NativeWindow = map[intent.WriteType]time.Duration{intent.Create: 24 * time.Hour}
	return p
}

// A write that was open at two restores may have been sent in either missing time: the destination has
// forgotten a key of the first.
func TestOpenAtTwoRestores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		d := b.world.Destination()
		d.Profiles = map[string]connectors.Profile{orders.Kind: windowed(connectors.Profile{WriteOnly: true})}
		b.engine = b.engineOn(b.ledger, d, nil)
		id := b.enqueue(order("A-1", intent.Create))
		b.restored(func(e *engine.Engine) { doOn(t, e, order("A-1", intent.Create)) })
		if _, err := ledger.EndRestore(t.Context(), b.ledger, "ann", "all callers have ended"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Hour) // longer than the window of the key
		b.restored(func(*engine.Engine) {})
		b.engine = b.engineOn(b.ledger, d, nil)
		b.work(2 * time.Hour)
		if got := b.state(id); got.State != ledger.Review || len(b.effects()) != 1 {
			t.Errorf("%s with %d effects; want it in review with 1%s", got.Phase(), len(b.effects()), b.life(id))
		}
	})
}

// A write with an idempotency key that was open at the restore may have failed in the missing time, and
// another workflow may have done its operation then.
func TestOperationOpenAtARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		d := b.world.Destination()
		p := d.Profiles[orders.Kind]
		p.FreshKeys = true
		d.Profiles = map[string]connectors.Profile{orders.Kind: p}
		w := order("A-1", intent.Create)
		w.IdempotencyKey = "wire:7"
		id := b.enqueue(w)
		b.restored(func(e *engine.Engine) {
			other := order("A-2", intent.Create)
			other.Workflow, other.IdempotencyKey = "another", w.IdempotencyKey
			doOn(t, e, other)
		})
		b.engine = b.engineOn(b.ledger, d, nil)
		b.work(2 * time.Hour)
		if got := b.state(id); got.State != ledger.Review || len(b.effects()) != 1 {
			t.Errorf("%s with %d effects; want it in review with 1%s", got.Phase(), len(b.effects()), b.life(id))
		}
	})
}

// When an operator has ended the restore, new writes are as without one, and those that were open then
// are still read first. A note that cannot be read prevents all sends.
func TestARestoreEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		open := b.enqueue(order("A-1", intent.Create))
		b.restored(func(e *engine.Engine) { doOn(t, e, order("A-1", intent.Create)) })
		if _, err := ledger.EndRestore(t.Context(), b.ledger, "ann", "all callers have ended"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if out := b.do(order("A-2", intent.Create)); out.Status != ledger.Verified || out.Sends != 1 || !b.state(out.ID).Restored.IsZero() {
			t.Errorf("a new write: %+v%s", out, b.life(out.ID))
		}
		b.work(2 * time.Hour)
		if got := b.state(open); got.Settlement != ledger.Verified || len(b.effects()) != 2 || got.Restored.IsZero() {
			t.Errorf("%s, %d effects in all%s", got.Phase(), len(b.effects()), b.life(open))
		}
		if _, err := ledger.EndRestore(t.Context(), b.ledger, "ann", "again"); err == nil {
			t.Error("it was ended twice")
		}
		notes, _, err := b.ledger.Notes(t.Context(), "restore")
		if err != nil || len(notes) != 1 {
			t.Fatal(notes, err)
		}
		notes[0].Value = []byte("{")
		if _, err := b.ledger.SetNote(t.Context(), notes[0]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		var e *engine.Error
		if _, err := b.engine.Do(t.Context(), order("A-3", intent.Create)); !errors.As(err, &e) || e.Known != engine.KnownNothing || len(b.effects()) != 2 {
			t.Errorf("%v with %d effects; want an error, and nothing sent or known", err, len(b.effects()))
		}
	})
}

// A send that was known to be refused, or not made, when the backup was made may have been made since:
// what is irreversible is not sent again, whatever a read shows.
func TestKnownFateAtARestore(t *testing.T) {
	irreversible := func(b *bench) connectors.Destination {
		d := b.world.Destination()
		p := d.Profiles[orders.Kind]
		p.Irreversible = []intent.WriteType{intent.Create}
		d.Profiles = map[string]connectors.Profile{orders.Kind: p}
		return d
	}
	for name, c := range map[string]struct {
		before func(*bench) // leads to the state of the backup
		state  ledger.State
		then   func(*bench) // in the missing time, before the write is made
		after  func(*bench, ledger.ID)
	}{
		"throttled": {func(b *bench) { b.set(orders.Fault{Kind: orders.Throttled, Times: 1, Delay: 10 * time.Minute}) }, ledger.Checking, func(*bench) {}, func(*bench, ledger.ID) {}},
		"in review, never sent": {
			func(b *bench) { b.seed(intent.Fields{"order_id": "A-1"}, "") }, ledger.Review, func(b *bench) { b.remove("A-1") },
			func(b *bench, id ledger.ID) {
				if _, err := b.engine.Resolve(b.t.Context(), "acme", id, engine.Decision{Word: engine.WordRetry, By: "bob", Reason: "r"}); err != nil {
					b.t.Fatal(err)
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				c.before(b)
				d := irreversible(b)
				b.engine = b.engineOn(b.ledger, d, nil)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				out, err := b.engine.Do(ctx, order("A-1", intent.Create))
				if got := b.state(out.ID); err != nil || got.State != c.state || got.Unknown {
					t.Fatalf("%s, %v at the restore%s", got.Phase(), err, b.life(out.ID))
				}
				b.engine.Close()
				b.world.Clear()
				made := 0
				b.restored(func(e *engine.Engine) {
					c.then(b)
					doOn(t, e, order("A-1", intent.Create))
					b.remove("A-1") // by another actor
					made = len(b.effects())
				})
				b.engine = b.engineOn(b.ledger, d, nil)
				c.after(b, out.ID)
				b.work(2 * time.Hour)
				if got := b.state(out.ID); got.State != ledger.Review || len(b.effects()) != made {
					t.Errorf("%s with %d effects, of which %d were made before; want it in review%s", got.Phase(), len(b.effects()), made, b.life(out.ID))
				}
			})
		})
	}
}

// A write that was in review at the backup may have been sent in the missing time, by a reviewer's
// decision, and that send may arrive later: no read before its horizon ends the review or permits a send.
func TestInReviewAtARestore(t *testing.T) {
	for name, word := range map[string]engine.Word{"read again": "", "sent again by a reviewer": engine.WordRetry} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				o.Horizon = connectors.Within(10 * time.Minute)
				b := newBench(t, o, nil)
				b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
				b.meddle(intent.Create, func() { b.seed(intent.Fields{"order_id": "A-1"}, "") })
				id := b.do(order("A-1", intent.Create)).ID
				if got := b.state(id); got.State != ledger.Review || got.Due.IsZero() {
					t.Fatalf("%s, due %s; want it in review and read again%s", got.Phase(), got.Due, b.life(id))
				}
				time.Sleep(11 * time.Minute) // that send can no longer arrive
				b.remove("A-1")
				b.restored(func(e *engine.Engine) {
					b.set(orders.Fault{Kind: orders.LateCommit, Times: 1, Delay: 5 * time.Minute})
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					defer cancel()
					if out, err := e.Do(ctx, order("A-1", intent.Create)); err != nil || out.Sends != 1 { // as if a reviewer had ordered it
						t.Fatalf("%+v, %v in the missing time", out, err)
					}
				})
				if len(b.effects()) != 0 {
					t.Fatal("the send has arrived already")
				}
				if word != "" {
					retry := engine.Decision{Word: word, By: "bob", Reason: "r"}
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					defer cancel()
					if _, err := b.engine.Resolve(ctx, "acme", id, retry); err != nil {
						t.Fatal(err)
					}
				}
				b.work(2 * time.Hour)
				if got := b.state(id); got.Settlement != ledger.Verified || len(b.effects()) != 1 {
					t.Errorf("%s with %d effects, want it verified with 1%s", got.Phase(), len(b.effects()), b.life(id))
				}
			})
		})
	}
}

// A caller asks again with other words for what was done in the missing time. The record that its stamp
// shows is another request's: it is not repaired, undone or made anew.
func TestAskedAgainWithOtherWords(t *testing.T) {
	for name, change := range map[string]func(*intent.WriteIntent){
		"a value":       func(w *intent.WriteIntent) { w.Expect["currency"] = "CHF" },
		"another field": func(w *intent.WriteIntent) { w.Expect["note"] = "by the agent" },
		"another key":   func(w *intent.WriteIntent) { w.Key["order_id"] = "A-2" },
	} {
		for _, on := range []intent.MismatchPolicy{intent.MismatchEscalate, intent.MismatchRepair, intent.MismatchCompensate} {
			t.Run(name+"/"+string(on), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := orders.Plain.Options()
					o.StampUpdates = true // else nothing is repaired
					b := newBench(t, o, nil)
					b.restored(func(e *engine.Engine) { doOn(t, e, order("A-1", intent.Create)) })
					w := order("A-1", intent.Create)
					w.OnMismatch, w.Reversibility = on, intent.Compensable
					change(&w)
					id := b.do(w).ID
					b.work(2 * time.Hour)
					if got := b.state(id); got.State != ledger.Review || len(b.effects()) != 1 {
						t.Errorf("%s with %d effects; want it in review with 1%s", got.Phase(), len(b.effects()), b.life(id))
					}
				})
			})
		}
	}
}
