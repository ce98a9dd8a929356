package engine_test

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite" // the caller's own driver

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/redact"
)

func TestWhatCannotBeSealedIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		vault  bool
		change func(w *intent.WriteIntent)
		says   string
		reason string
	}{
		"marked, no keys":       {false, func(*intent.WriteIntent) {}, `/sensitive marks "/amount_cents"`, "it would be kept in the clear"},
		"by the destination":    {false, func(w *intent.WriteIntent) { w.Sensitive = nil }, "/order_id is sensitive at this destination", "the same"},
		"a token for a value":   {true, func(w *intent.WriteIntent) { w.Expect["currency"] = "rbs1:x" }, "/expect/currency begins with", "it would be opened"},
		"a token for a key":     {true, func(w *intent.WriteIntent) { w.Key["order_id"] = "rbs1:x" }, "/key/order_id begins with", "the same"},
		"deep in the payload":   {true, func(w *intent.WriteIntent) { w.Payload["more"] = []any{map[string]any{"a": "rbs1:"}} }, "/payload/more/0/a begins with", "the same"},
		"a token for a name":    {true, func(w *intent.WriteIntent) { w.Payload["rbs1:x"] = true }, "/payload begins with", "the same"},
		"a token for a step":    {true, func(w *intent.WriteIntent) { w.Step = "rbs1:x" }, "/step begins with", "the same"},
		"in the context":        {true, func(w *intent.WriteIntent) { w.Context["model"] = "rbs1:x" }, "/context/model begins with", "the same"},
		"a value for an id":     {true, func(w *intent.WriteIntent) { w.IdempotencyKey = "pay " + canaryKey }, "/idempotency_key contains a sensitive value", "ids are kept in the clear"},
		"a pattern for a name":  {true, func(w *intent.WriteIntent) { w.Payload["PATTERN-7"] = true }, `/payload has a member whose name the pattern "currency"`, "names are kept in the clear"},
		"a token without keys":  {false, func(w *intent.WriteIntent) { w.Sensitive, w.Expect["currency"] = nil, "rbs1:x" }, "/expect/currency begins with", "a process with keys would open it"},
		"as a way to be undone": {true, nil, "/expect/note begins with", "it would be written"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := discreet(t, orders.Plain.Options(), nil)
				if !c.vault {
					b.engine = b.sealing(nil, nil)
				}
				w := private(intent.Create)
				var err error
				if c.change == nil {
					done := b.do(compensable(w))
					way := intent.WriteIntent{Destination: w.Destination, Kind: w.Kind, Key: w.Key, Write: intent.Update, Expect: intent.Fields{"note": "rbs1:x"}}
					_, err = b.engine.Undo(t.Context(), "acme", done.ID, engine.Undoing{By: "saga", Reason: "r", Intent: &way})
				} else {
					c.change(&w)
					_, err = b.engine.Do(t.Context(), w)
					if known := b.engine.Check(w); known == nil {
						t.Error("Check takes it")
					}
					if _, err := b.engine.Enqueue(t.Context(), w); err == nil {
						t.Error("Enqueue takes it")
					}
					if all, _ := b.ledger.List(t.Context(), ledger.Filter{Tenant: "acme"}); len(all) != 0 {
						t.Errorf("recorded: %+v", all)
					}
				}
				if !errors.Is(err, intent.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want %q: %s", err, c.says, c.reason)
				}
				noCanary(t, "the error", err.Error())
			})
		})
	}
}

// A process without the key only reports which key it lacks. One with it continues the write,
// even if it seals with another key by now.
func TestMissingKey(t *testing.T) {
	for name, c := range map[string]struct {
		begin  func(b *bench) ledger.ID
		sends  int
		reason string
	}{
		"queued": {func(b *bench) ledger.ID {
			id, err := b.engine.Enqueue(b.t.Context(), private(intent.Create))
			if err != nil {
				b.t.Fatal(err)
			}
			return id
		}, 0, "nothing was sent yet"},
		"sent": {func(b *bench) ledger.ID {
			b.set(orders.Fault{Kind: orders.UnreadableRead, Skip: 1, Times: 1})
			b.set(orders.Fault{Kind: orders.LostAnswer, Times: 1})
			ctx, cancel := context.WithTimeout(b.t.Context(), time.Millisecond)
			defer cancel()
			out, err := b.engine.Do(ctx, private(intent.Create))
			if err != nil || out.Status != ledger.InProgress {
				b.t.Fatalf("%+v, %v", out, err)
			}
			b.engine.Close()
			return out.ID
		}, 1, "the fate of the send is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := discreet(t, orders.Plain.Options(), nil)
				id := c.begin(b)
				for _, v := range []*redact.Vault{vaultOf(t, "k2"), nil} {
					b.engine = b.sealing(v, nil)
					b.worked(3 * time.Hour)
					seq := b.state(id).Seq
					for range 5 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						if _, err := b.engine.Wait(ctx, "acme", id, true); err != nil && !errors.Is(err, redact.ErrNoKey) {
							t.Error(err)
						}
						cancel()
					}
					if again := b.state(id).Seq - seq; again > 2 {
						t.Errorf("callers put it back in %d rows%s", again, b.life(id))
					}
				}
				writes, _ := b.world.Count()
				rec := b.state(id)
				if writes != c.sends || rec.State == ledger.Settled || rec.State == ledger.Review || rec.Due.IsZero() {
					t.Errorf("%d sends, %s: %s%s", writes, rec.Phase(), c.reason, b.life(id))
				}
				if rec.Rule != "unworkable" || !strings.Contains(rec.Reason, `"k1"`) || rec.Verdict == "mismatched" {
					t.Errorf("%s: %s (%s)", rec.Rule, rec.Reason, rec.Verdict)
				}
				b.engine = b.sealing(vaultOf(t, "k2", "k1"), nil)
				b.worked(3 * time.Hour)
				if got := b.state(id); got.Settlement != ledger.Verified || len(b.world.Records(canaryKey)) != 1 {
					t.Errorf("with the key: %s%s", got.Phase(), b.life(id))
				}
				if !strings.Contains(string(b.state(id).Evidence), redact.Prefix+"k2:") {
					t.Error("the new key does not seal")
				}
				b.clean()
			})
		})
	}
}

// A reviewer can end a write that no process can open any more.
func TestAWriteWhoseKeyIsLostCanBeEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discreet(t, orders.Plain.Options(), nil)
		b.seed(intent.Fields{"order_id": canaryKey, "amount_cents": jsonNumber(5)}, "")
		out := b.do(private(intent.Create)) // another actor's record is there
		if out.Status != ledger.StatusReview {
			t.Fatalf("setup: %+v", out)
		}
		b.engine = b.sealing(vaultOf(t, "k2"), nil)
		d := engine.Decision{Word: engine.WordRetry, By: "kim", Reason: "again"}
		if _, err := b.engine.Resolve(t.Context(), "acme", out.ID, d); !errors.Is(err, redact.ErrNoKey) {
			t.Errorf("retry: %v; want the missing key", err)
		}
		time.Sleep(time.Hour)
		d = engine.Decision{Word: engine.WordAbandon, By: "kim", Reason: "the key is lost"}
		if got, err := b.engine.Resolve(t.Context(), "acme", out.ID, d); err != nil || got.Status != ledger.Abandoned {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A reviewer's view of a write shows no sensitive value.
func TestChoicesAboutSealedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discreet(t, orders.Plain.Options(), nil)
		b.seed(intent.Fields{"order_id": canaryKey, "amount_cents": jsonNumber(5), "note": canaryBefore}, "")
		b.set(orders.Fault{Kind: orders.DroppedField, Times: 1, Field: "currency"})
		review := b.do(compensable(private(intent.Update)))
		w := private(intent.Update)
		w.Call, w.Risk = 1, intent.RiskApprove
		held := b.do(w)
		if review.Status != ledger.StatusReview || held.Status != ledger.StatusHeld {
			t.Fatalf("setup: %+v %+v", review, held)
		}
		for _, id := range []ledger.ID{review.ID, held.ID} {
			choices, err := b.engine.Choices(t.Context(), "acme", id)
			if err != nil {
				t.Fatal(err)
			}
			noCanary(t, "a choice", text(t, choices))
			if strings.Contains(text(t, choices), redact.Prefix) {
				t.Errorf("a choice shows a token: %s", text(t, choices))
			}
		}
		if all, _ := b.engine.Choices(t.Context(), "acme", held.ID); !strings.Contains(text(t, all), redact.ShownPrefix) {
			t.Errorf("what is to be sent is not named: %s", text(t, all))
		}
	})
}

// A value from the destination that resembles a token is sealed, or dropped, and never opened.
func TestTokensFromDestinations(t *testing.T) {
	for name, vault := range map[string]*redact.Vault{"with keys": vaultOf(t, "k1"), "without": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), &engine.Options{Vault: vault})
				fields := intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5), "note": "rbs1:k1:not a token"}
				b.seed(fields, "")
				time.Sleep(time.Minute)
				out := b.do(compensable(order("A-1", intent.Update)))
				want := ledger.Verified
				if vault == nil { // the pre-state would be indistinguishable from sealed values
					want = ledger.NotApplied
				}
				if out.Status != want {
					t.Fatalf("%+v%s", out, b.life(out.ID))
				}
				if vault == nil {
					return
				}
				if got := b.undo(out.ID, unwanted); got.Status != ledger.Compensated || b.world.Records("A-1")[0].Fields["note"] != "rbs1:k1:not a token" {
					t.Errorf("%+v %+v%s", got, b.world.Records("A-1"), b.life(out.Undoing))
				}
			})
		})
	}
}

// Evidence that is too large leaves a digest that reveals nothing.
func TestLargeEvidenceIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discreet(t, orders.Plain.Options(), nil)
		w := private(intent.Create)
		w.Payload["note"] = canaryNote + strings.Repeat("x", 200<<10) // it fits, and its token does not
		out := b.do(w)
		rec := b.state(out.ID)
		if out.Status != ledger.Verified || !strings.Contains(string(rec.Evidence), `"digest":"`) || strings.Contains(string(rec.Evidence), "sha256") {
			t.Errorf("%s, %s", out.Status, rec.Evidence)
		}
		b.clean(out)
	})
}

// The files of a ledger contain no canary, its waiting outbox entries included.
func TestSealedOnDisk(t *testing.T) {
	world, err := orders.New(orders.Plain.Options())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ledger.db")
	book, err := sqlite.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, world: world}
	b.engine = b.sealingOn(book, nil, vaultOf(t, "k1"), &engine.Options{Patience: 100 * time.Millisecond})
	b.set(orders.Fault{Kind: orders.LostAnswer, Times: 1})
	if out, err := b.engine.Do(t.Context(), undoable(private(intent.Create))); err != nil || out.Status != ledger.Verified {
		t.Fatalf("%+v, %v", out, err)
	}
	b.set(orders.Fault{Kind: orders.NormalisedField, Times: 1, Field: "note", How: "upper"})
	w := private(intent.Update)
	w.Workflow, w.Expect, w.Payload = "wf-2", intent.Fields{"note": canaryBefore}, nil
	if out, err := b.engine.Do(t.Context(), w); err != nil || out.Status != ledger.StatusReview {
		t.Fatalf("%+v, %v", out, err)
	}
	tx := begin(t, file)
	if _, err := sqlite.Enqueue(t.Context(), tx, private(intent.Create)); !errors.Is(err, intent.ErrInvalid) || !strings.Contains(err.Error(), "/sensitive") {
		t.Errorf("an outbox takes what it cannot seal: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	enqueued := private(intent.Create)
	enqueued.Workflow, enqueued.Sensitive, enqueued.Context = "wf-3", nil, nil
	enqueued.Key, enqueued.Expect, enqueued.Payload = intent.Fields{"order_id": "Canary-Outbox"}, intent.Fields{"currency": "EUR"}, nil
	tx = begin(t, file)
	id, err := sqlite.Outbox{Keys: vaultOf(t, "k1")}.Enqueue(t.Context(), tx, enqueued)
	if err != nil || tx.Commit() != nil {
		t.Fatal(err)
	}
	filesAreClean(t, file) // while it waits too, though it marks nothing: its destination does
	if _, err := b.engine.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	rec, err := book.Get(t.Context(), "acme", id)
	if err != nil || rec.Settlement != ledger.Verified || strings.Contains(text(t, rec), "Canary") {
		t.Errorf("%s, %v", text(t, rec), err)
	}
	b.engine.Close()
	filesAreClean(t, file) // the log too
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	filesAreClean(t, file)
}

// begin begins a caller's transaction, which is rolled back unless it commits.
func begin(t *testing.T, file string) *stdsql.Tx {
	t.Helper()
	db, err := stdsql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(); _ = db.Close() })
	return tx
}

func filesAreClean(t *testing.T, file string) {
	t.Helper()
	all, err := filepath.Glob(file + "*")
	if err != nil || len(all) == 0 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, name := range all {
		kept, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		noCanary(t, filepath.Base(name), string(kept))
	}
}

// BenchmarkIdleSealing measures the cost of a vault for a write without sensitive values.
func BenchmarkIdleSealing(b *testing.B) {
	seen := connectors.Observation{Records: []connectors.Record{{Ref: "1", Fields: intent.Fields{"order_id": "A-1", "amount_cents": json.Number("1999"), "note": strings.Repeat("n", 200)}}}}
	idle, err := redact.New([]redact.Key{{ID: "k", Secret: []byte(strings.Repeat("k", 32))}}, redact.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for name, v := range map[string]*redact.Vault{"none": nil, "idle": idle} {
		b.Run("vault="+name, func(b *testing.B) {
			for b.Loop() {
				s := v.Scope("acme", "wr_1")
				if _, err := s.SealObservation(seen); err != nil || s.Text("found exactly as requested") == "" || s.SealName("1") != "1" {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if _, err := json.Marshal(seen); err != nil {
				b.Fatal(err)
			}
		}
	})
}
