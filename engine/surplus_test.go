package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// removing asks for surplus records to be removed.
func removing() *engine.Options {
	return &engine.Options{Policies: append([]policies.Policy{policies.RemoveSurplus()}, policies.Standard()...)}
}

// doubled makes a create that is verified by its second send, and that the first
// one doubles minutes later. It returns the write and the record that was
// verified.
func (b *bench) doubled() (engine.Outcome, string) {
	b.t.Helper()
	b.set(simulated.Fault{Vice: simulated.LateCommit, Delay: 5 * time.Minute, Times: 1})
	out := b.do(undoable(order("A-1", intent.Create)))
	if out.Status != engine.StatusVerified || out.Sends != 2 {
		b.t.Fatalf("setup: %+v%s", out, b.life(out.ID))
	}
	time.Sleep(6 * time.Minute)
	if n := len(b.world.Records("A-1")); n != 2 {
		b.t.Fatalf("setup: %d records", n)
	}
	return out, out.Ref
}

// live runs a worker until nothing can be due any more, save for people.
func (b *bench) live() {
	b.t.Helper()
	for _, c := range []struct{ idle, d time.Duration }{{10 * time.Second, time.Hour}, {10 * time.Minute, 40 * time.Hour}} {
		ctx, cancel := context.WithTimeout(b.t.Context(), c.d)
		err := b.engine.Work(ctx, &engine.WorkOptions{Idle: c.idle})
		cancel()
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// removals are the ids that requests of ours removed.
func (b *bench) removals() []string {
	var gone []string
	for _, e := range b.world.Effects() {
		if e.Op == simulated.OpDelete && e.By == simulated.ByRequest {
			gone = append(gone, e.ID)
		}
	}
	return gone
}

// child is the write that undoes a write, or removes its surplus record.
func (b *bench) child(id ledger.ID) (ledger.Record, bool) {
	b.t.Helper()
	w := undoable(order("A-1", intent.Create))
	w.Compensates = string(id)
	rec, err := b.ledger.Get(context.Background(), "acme", ledger.IDOf(w.StructuralKey()))
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		b.t.Fatal(err)
	}
	return rec, err == nil
}

func TestSurplusIsRemoved(t *testing.T) {
	for _, class := range []simulated.Class{simulated.Plain, simulated.Lagging, simulated.Native} {
		t.Run(string(class), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := class.Options()
				o.Window, o.Bulk = 0, true
				b := newBench(t, o, removing())
				out, kept := b.doubled()
				b.live()
				got, left := b.state(out.ID), b.world.Records("A-1")
				if got.Settlement != ledger.Verified || got.Ref != kept || !strings.Contains(b.life(out.ID), "a surplus record is gone") {
					t.Errorf("%s %s: %s%s", got.Phase(), got.Ref, got.Reason, b.life(out.ID))
				}
				if len(left) != 1 || left[0].ID != kept || len(b.removals()) != 1 {
					t.Errorf("left %+v, removed %v; want %s alone left%s", left, b.removals(), kept, b.life(out.ID))
				}
				child, _ := b.child(out.ID)
				if child.Settlement != ledger.Verified || child.Parent != out.ID {
					t.Errorf("the removal is %s%s", child.Phase(), b.life(child.ID))
				}
			})
		})
	}
}

// Whatever is not surely ours and surplus stays, and a person has the write.
func TestSurplusStaysWithAPerson(t *testing.T) {
	edit := func(surplus bool) func(*bench, engine.Outcome) {
		return func(b *bench, out engine.Outcome) {
			for _, r := range b.world.Records("A-1") {
				if (r.ID != out.Ref) == surplus {
					if _, err := b.world.Edit(r.ID, intent.Fields{"currency": "EUR"}); err != nil {
						b.t.Error(err)
					}
				}
			}
		}
	}
	for name, c := range map[string]struct {
		opts   *engine.Options
		then   func(*bench, engine.Outcome)
		reason string
	}{
		"not asked for":      {nil, func(*bench, engine.Outcome) {}, "it is no standard policy"},
		"surplus worked on":  {removing(), edit(true), "somebody's work would be lost"},
		"verified worked on": {removing(), edit(false), "the one to stay is not as declared"},
		"three":              {removing(), func(b *bench, out engine.Outcome) { b.seed(asStored("A-1"), b.stampOf(out)) }, "more than was ever sent"},
		"beside another's":   {removing(), func(b *bench, _ engine.Outcome) { b.seed(asStored("A-1"), "") }, "somebody else has a record there"},
		"another write is held": {removing(), func(b *bench, _ engine.Outcome) {
			w := call(order("A-1", intent.Update), 1)
			w.Risk = intent.RiskApprove
			b.do(w)
		}, "it may be about either"},
		"verified one is gone, another is there": {removing(), func(b *bench, out engine.Outcome) {
			if err := b.world.Remove(out.Ref); err != nil {
				b.t.Error(err)
			}
			b.seed(asStored("A-1"), b.stampOf(out))
		}, "the one to stay is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, simulated.Plain.Options(), c.opts)
				out, _ := b.doubled()
				c.then(b, out)
				before := len(b.world.Records("A-1"))
				b.live()
				if got := b.state(out.ID); got.State != ledger.Review || len(b.removals()) != 0 || len(b.world.Records("A-1")) != before {
					t.Errorf("%s, removed %v: %s%s", got.Phase(), b.removals(), c.reason, b.life(out.ID))
				}
			})
		})
	}
}

func (b *bench) stampOf(engine.Outcome) string { return undoable(order("A-1", intent.Create)).Stamp() }

// One send that is there twice was doubled by others: a clone, a gateway.
func TestSurplusOfOneSendIsNotOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := simulated.Plain.Options()
		o.Recheck = connectors.Within(time.Hour)
		b := newBench(t, o, removing())
		out := b.do(undoable(order("A-1", intent.Create)))
		b.seed(asStored("A-1"), b.stampOf(out))
		b.live()
		if got := b.state(out.ID); got.State != ledger.Review || len(b.removals()) != 0 {
			t.Errorf("%s, removed %v%s", got.Phase(), b.removals(), b.life(out.ID))
		}
	})
}

// A removal that waited is looked at again before it is sent: meanwhile its
// record may have become the only one, or the write somebody's.
func TestRemovalThatWaited(t *testing.T) {
	for name, c := range map[string]struct {
		then    func(*bench, engine.Outcome, string)
		removed bool
		want    ledger.Settlement // "" for review
		reason  string
	}{
		"nothing happened": {func(*bench, engine.Outcome, string) {}, true, ledger.Verified, "it still is surplus"},
		"the verified one is gone": {func(b *bench, _ engine.Outcome, kept string) {
			if err := b.world.Remove(kept); err != nil {
				b.t.Error(err)
			}
		}, false, "", "it would be the last"},
		"a person accepted both": {func(b *bench, out engine.Outcome, _ string) {
			if _, err := b.engine.Resolve(b.t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordAccept, By: "ada", Reason: "both"}); err != nil {
				b.t.Error(err)
			}
		}, false, ledger.Accepted, "the write is settled"},
		"it was worked on": {func(b *bench, _ engine.Outcome, kept string) {
			for _, r := range b.world.Records("A-1") {
				if r.ID != kept {
					if _, err := b.world.Edit(r.ID, intent.Fields{"note": "theirs"}); err != nil {
						b.t.Error(err)
					}
				}
			}
		}, false, "", "their work would be lost"},
		"another write came": {func(b *bench, _ engine.Outcome, _ string) { b.enqueue(call(order("A-1", intent.Delete), 1)) }, false, "", "it may be about either"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := removing()
				o.Risks = gated.Risks
				b := newBench(t, simulated.Plain.Options(), o)
				out, kept := b.doubled()
				b.work(time.Hour)
				child, there := b.child(out.ID)
				if !there || child.State != ledger.Held || b.state(out.ID).State != ledger.Review {
					t.Fatalf("want it held for approval: %s%s", child.Phase(), b.life(out.ID))
				}
				for _, word := range []engine.Word{engine.WordCompensate, engine.WordRetry} {
					if _, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: word, By: "ada", Reason: "x"}); !errors.Is(err, engine.ErrNotWaiting) {
						t.Errorf("%s while the removal is open: %v", word, err)
					}
				}
				c.then(b, out, kept)
				if _, err := b.engine.Resolve(t.Context(), "acme", child.ID, engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "remove it"}); err != nil {
					t.Fatal(err)
				}
				b.live()
				gone := b.removals()
				if c.removed != (len(gone) == 1) || slices.Contains(gone, kept) {
					t.Errorf("removed %v: %s%s%s", gone, c.reason, b.life(out.ID), b.life(child.ID))
				}
				if got := b.state(out.ID); got.Settlement != c.want {
					t.Errorf("%s, want %q%s%s", got.Phase(), c.want, b.life(out.ID), b.life(child.ID))
				}
			})
		})
	}
}

// A person who wants the whole write undone after a removal is told that it
// cannot be: it is never called undone because something surplus was removed.
func TestRemovalIsNoUndoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, simulated.Plain.Options(), removing())
		out, kept := b.doubled()
		b.live()
		rec := b.state(out.ID)
		lent, err := b.ledger.Claim(t.Context(), ledger.Claim{Owner: "x", LeaseFor: time.Minute, Tenant: "acme", ID: out.ID, Early: true})
		if err != nil || len(lent) != 1 {
			t.Fatal(lent, err)
		}
		if _, err := b.ledger.Append(t.Context(), rec.ID, lent[0].Fence, ledger.Event{Kind: ledger.EvEscalated, Rule: "test", Reason: "a person wants it"}); err != nil {
			t.Fatal(err)
		}
		_, err = b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordCompensate, By: "ada", Reason: "not wanted"})
		b.live()
		got := b.state(out.ID)
		if strings.Contains(b.life(out.ID), "undone by") {
			t.Errorf("called undone%s", b.life(out.ID))
		}
		if err != nil || got.State != ledger.Review || len(b.world.Records("A-1")) != 1 || b.world.Records("A-1")[0].ID != kept {
			t.Errorf("%v, %s with %+v%s", err, got.Phase(), b.world.Records("A-1"), b.life(out.ID))
		}
	})
}

// doomed is a process that can die at any of its calls, with all powers.
type doomed struct{ *mortal }

func (d doomed) Remove(w intent.WriteIntent, surplus connectors.Record) (intent.WriteIntent, error) {
	return d.Connector.(connectors.Remover).Remove(w, surplus)
}

// A process that finds a double dies at each of its calls in turn, and another
// one carries on.
func TestRemovalSurvivesEveryCrash(t *testing.T) {
	for _, class := range []simulated.Class{simulated.Plain, simulated.Lagging} {
		for _, how := range []string{"before", "after", "landing"} {
			t.Run(fmt.Sprint(class, "/", how), func(t *testing.T) {
				calls, lived := 0, false
				for ; !lived && calls < 60; calls++ {
					synctest.Test(t, func(t *testing.T) { lived = crashed(t, class.Options(), calls, how) })
				}
				if !lived || calls < 8 {
					t.Errorf("%d calls, lived %v: the crashes are not where they should be", calls, lived)
				}
			})
		}
	}
}

// crashed reports whether the process lived to the end of the removal.
func crashed(t *testing.T, o simulated.Options, calls int, how string) (lived bool) {
	b := newBench(t, o, removing())
	out, kept := b.doubled()
	d := b.world.Destination()
	m := &mortal{Ledger: b.ledger, Connector: d.Connector, settled: func(ledger.Record) {}}
	m.doom(calls, how)
	d.Connector = doomed{m}
	dying := b.engineOn(m, d, removing())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	_ = dying.Work(ctx, &engine.WorkOptions{Idle: 10 * time.Second}) // it dies
	cancel()
	lived = !m.isDead()
	b.live()
	got, left := b.state(out.ID), b.world.Records("A-1")
	if gone := b.removals(); slices.Contains(gone, kept) || len(gone) != 1 || len(left) != 1 {
		t.Errorf("dead %s call %d: removed %v, %s was verified%s", how, calls, gone, kept, b.life(out.ID))
	}
	if got.Settlement != ledger.Verified || got.Ref != kept {
		child, _ := b.child(out.ID)
		t.Errorf("dead %s call %d: %s%s%s", how, calls, got.Phase(), b.life(out.ID), b.life(child.ID))
	}
	return lived
}
