package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
)

// unread counts reads, of which there must be none.
type unread struct {
	connectors.Connector
	reads atomic.Int64
}

func (u *unread) Read(context.Context, connectors.Query) (connectors.Observation, error) {
	u.reads.Add(1)
	return connectors.Observation{}, connectors.ErrWriteOnly
}

// writeOnly has the bench's destination declare that nothing can be read there.
func (b *bench) writeOnly(window time.Duration, opts *engine.Options) *unread {
	b.t.Helper()
	d := b.world.Destination()
	u := &unread{Connector: d.Connector}
	p := connectors.Profile{WriteOnly: true}
	if window > 0 {
		p.NativeWindow = map[intent.WriteType]time.Duration{intent.Create: window, intent.Update: window, intent.Upsert: window, intent.Delete: window}
	}
	b.engine = b.engineOn(b.ledger, connectors.Destination{Connector: u, Profiles: map[string]connectors.Profile{orders.Kind: p}}, opts)
	return u
}

func TestWriteOnly(t *testing.T) {
	window := 24 * time.Hour
	for name, c := range map[string]struct {
		window  time.Duration
		fault   orders.FaultKind
		times   int
		status  ledger.Status
		records int
		sends   int
		reason  string
	}{
		"an acceptance":               {0, "", 0, ledger.Reported, 1, 1, "it was reported, and it was not read"},
		"an acceptance that is a lie": {0, orders.PhantomSuccess, 1, ledger.Reported, 0, 1, "it is never called verified"},
		"a no":                        {0, orders.Refused, 1, ledger.NotApplied, 0, 1, "it is known"},
		"not now, once":               {0, orders.Throttled, 1, ledger.Reported, 1, 2, "it was not taken up"},
		"unreachable, for a while":    {0, orders.Unreachable, 5, ledger.Reported, 1, 6, "nothing left us"},
		"no answer":                   {0, orders.LostAnswer, 1, ledger.StatusReview, 1, 1, "a second send could double it"},
		"no answer, and it failed":    {0, orders.DroppedBefore, 1, ledger.StatusReview, 0, 1, "it is unknown"},
		"no answer, deduplicated":     {window, orders.LostAnswer, 1, ledger.Reported, 1, 2, "it makes one of two"},
		"dropped, deduplicated":       {window, orders.DroppedBefore, 1, ledger.Reported, 1, 2, "the second one is the first"},
		"never an answer":             {window, orders.LostAnswer, 0, ledger.StatusReview, 1, 4, "a budget for a life"},
	} {
		for _, write := range []intent.WriteType{intent.Create, intent.Upsert} {
			t.Run(name+"/"+string(write), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := orders.Unique.Options()
					o.Window = c.window
					o.Unique = write == intent.Upsert
					b := newBench(t, o, nil)
					u := b.writeOnly(c.window, nil)
					if c.fault != "" {
						b.set(orders.Fault{Kind: c.fault, Times: c.times})
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					out, err := b.engine.Do(ctx, order("A-1", write))
					if err != nil {
						t.Fatal(err)
					}
					if rec := b.state(out.ID); !rec.Due.IsZero() {
						t.Errorf("%s is due at %v, and no read will change it", rec.Phase(), rec.Due)
					}
					b.work(time.Duration(30/need.OneIn(10)) * time.Hour)
					rec := b.state(out.ID)
					if got := engine.OutcomeOf(rec); got.Status != c.status || out.Status != c.status || got.Sends != c.sends || len(b.world.Records("A-1")) != c.records {
						t.Errorf("%+v, and %d records: %s%s", got, len(b.world.Records("A-1")), c.reason, b.life(out.ID))
					}
					if n := u.reads.Load(); n != 0 || rec.Reads != 0 || !rec.Due.IsZero() {
						t.Errorf("%d reads of what cannot be read, due %v%s", n, rec.Due, b.life(out.ID))
					}
				})
			})
		}
	}
}

// A write that was announced when its process died is not read.
func TestWriteOnlyAfterACrash(t *testing.T) {
	for name, c := range map[string]struct {
		window time.Duration
		want   ledger.Status
		reason string
	}{
		"no deduplication": {0, ledger.StatusReview, "it may have arrived"},
		"it deduplicates":  {24 * time.Hour, ledger.Reported, "it makes one of two"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Native.Options(), nil)
				u := b.writeOnly(c.window, nil)
				rec, err := ledger.NewRecord(order("A-1", intent.Create))
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := b.ledger.Reserve(t.Context(), ledger.Reservation{Record: rec, Owner: "dead", LeaseFor: time.Second,
					Events: []ledger.Event{{Kind: ledger.EvAnnounced}}}); err != nil {
					t.Fatal(err)
				}
				b.work(2 * time.Minute)
				now := b.state(rec.ID)
				if got := engine.OutcomeOf(now); got.Status != c.want || u.reads.Load() != 0 || !now.Due.IsZero() {
					t.Errorf("%+v, due %v: %s%s", got, now.Due, c.reason, b.life(rec.ID))
				}
			})
		})
	}
}

// A recheck that was scheduled while the destination was readable is not reported as made.
func TestARecheckOfADestinationThatBecameWriteOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.Recheck = connectors.Within(time.Hour)
		b := newBench(t, o, nil)
		out := b.do(order("A-1", intent.Create))
		u := b.writeOnly(0, nil)
		b.work(24 * time.Hour)
		got := b.state(out.ID)
		if out.Status != ledger.Verified || got.State != ledger.Review || !strings.Contains(got.Reason, "it is to be read again") || u.reads.Load() != 0 || got.Seq > 20 {
			t.Errorf("%s, %q%s", got.Phase(), got.Reason, b.life(out.ID))
		}
	})
}

// Only a reviewer can decide about a write whose fate cannot be known.
func TestWriteOnlyReview(t *testing.T) {
	for name, c := range map[string]struct {
		d      engine.Decision
		want   ledger.Status
		sends  int
		reason string
	}{
		"retry":           {engine.Decision{Word: engine.WordRetry}, ledger.StatusReview, 1, "nothing shows it harmless"},
		"retry, by force": {engine.Decision{Word: engine.WordRetry, Force: true}, ledger.Reported, 2, "a reviewer vouches"},
		"compensate":      {engine.Decision{Word: engine.WordCompensate}, ledger.StatusReview, 1, "there is nothing to go by"},
		"accept":          {engine.Decision{Word: engine.WordAccept}, ledger.Accepted, 1, "they take it upon themselves"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				u := b.writeOnly(0, nil)
				b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
				w := order("A-1", intent.Create)
				w.Reversibility = intent.Compensable
				id := b.do(w).ID
				c.d.By, c.d.Reason = "ada", "x"
				out, err := b.engine.Resolve(t.Context(), "acme", id, c.d)
				if err != nil || out.Status != c.want || out.Sends != c.sends || u.reads.Load() != 0 {
					t.Errorf("%+v, %v, %d reads: %s%s", out, err, u.reads.Load(), c.reason, b.life(id))
				}
			})
		})
	}
}

// An effect that was not read back is not called verified.
func TestWriteOnlyTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		u := b.writeOnly(0, nil)
		out := b.do(order("A-1", intent.Create))
		for _, text := range []string{out.Text, out.ForModel} {
			if !strings.Contains(text, "erified") || !strings.Contains(text, "accepted") || strings.Contains(text, "step") {
				t.Errorf("%q", text)
			}
		}
		if !strings.Contains(out.ForModel, "Do not call again") || out.AskAgain != engine.AgainNo || out.Ref != "" {
			t.Errorf("%+v", out)
		}
		if _, err := b.engine.Undo(t.Context(), "acme", out.ID, engine.Undoing{By: "ada", Reason: "x"}); !errors.Is(err, engine.ErrNotWaiting) {
			t.Errorf("undone: %v", err)
		}
		if found := b.readBack(order("A-2", intent.Create), engine.ReadBackCase{Began: time.Now().Add(-time.Minute)}); found.Effect != engine.EffectUnknown || !strings.Contains(found.Reason, "nothing can be read") || u.reads.Load() != 0 {
			t.Errorf("read: %+v", found)
		}
	})
}

// The ledger records no report of an unanswered send.
func TestReportNeedsAnAcceptance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		rec, err := ledger.NewRecord(order("A-1", intent.Create))
		if err != nil {
			t.Fatal(err)
		}
		reported := ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Reported, By: "w"}
		for name, c := range map[string]struct {
			fate string
			want error
		}{"answered": {ledger.FateAnswered, nil}, "unknown": {ledger.FateUnknown, ledger.ErrIllegalMove}, "refused": {"refused", ledger.ErrIllegalMove}} {
			b.ledger = ledger.NewMemory()
			have, _, err := b.ledger.Reserve(t.Context(), ledger.Reservation{Record: rec, Owner: "w", LeaseFor: time.Minute, Events: []ledger.Event{{Kind: ledger.EvAnnounced}}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.ledger.Append(t.Context(), have.ID, have.Fence, ledger.Event{Kind: ledger.EvSent, Fate: c.fate}, reported); !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
	})
}
