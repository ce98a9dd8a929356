package engine_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/redact"
)

// Without keys no process takes in an outbox entry for a destination that marks fields. The
// entry waits with the reason, and is taken in sealed once an operator permits it.
func TestOutboxWithoutKeys(t *testing.T) {
	world, err := orders.New(orders.Plain.Options())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ledger.db")
	b := &bench{t: t, world: world}
	opts := &engine.Options{Patience: 100 * time.Millisecond}
	open := func() *sqlite.Ledger {
		book, err := sqlite.Open(t.Context(), file, nil)
		if err != nil {
			t.Fatal(err)
		}
		return book
	}
	resume := func(e *engine.Engine) {
		t.Helper()
		if _, err := e.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	book := open()
	keyless := b.sealingOn(book, nil, nil, opts)
	w := private(intent.Create)
	w.Sensitive, w.Context = nil, nil
	w.Expect, w.Payload = intent.Fields{"currency": "EUR"}, nil
	tx := begin(t, file)
	id, err := sqlite.Enqueue(t.Context(), tx, w)
	if err != nil || tx.Commit() != nil {
		t.Fatal(err)
	}
	resume(keyless)
	var refused *ledger.RefusedError
	if rec, err := book.Get(t.Context(), "acme", id); !errors.As(err, &refused) && !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("it was taken in: %s, %v", text(t, rec), err)
	}
	s, err := book.QueueStats(t.Context())
	if err != nil || len(s.Refused) != 1 || s.Refused[0].ID != id || !strings.Contains(s.Refused[0].Reason, "/order_id is sensitive at this destination") {
		t.Fatalf("%+v, %v", s.Refused, err)
	}
	noCanary(t, "the refusal", s.Refused[0].Reason)
	tx = begin(t, file)
	if _, err := tx.Exec("UPDATE ledger_outbox SET refused = NULL"); err != nil || tx.Commit() != nil {
		t.Fatal(err)
	}
	keyed := b.sealingOn(book, nil, vaultOf(t, "k1"), opts)
	b.sealingOn(book, nil, nil, opts) // another process without keys changes nothing
	resume(keyed)
	if rec, err := book.Get(t.Context(), "acme", id); err != nil || rec.Settlement != ledger.Verified || strings.Contains(text(t, rec), "Canary") {
		t.Errorf("%s, %v", text(t, rec), err)
	}
	keyless.Close()
	keyed.Close()
	if err := book.Close(); err != nil {
		t.Error(err)
	}
}

// Only a process with the key takes in a sealed outbox entry, once, whatever key seals by then.
// A process without it leaves the entry there, and reports which key it lacks. Data that is not
// the entry of its row is refused for good.
func TestASealedEntryWaitsForItsKey(t *testing.T) {
	world, err := orders.New(orders.Plain.Options())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ledger.db")
	b := &bench{t: t, world: world}
	book, err := sqlite.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	resume := func(v *redact.Vault) {
		t.Helper()
		e := b.sealingOn(book, nil, v, &engine.Options{Patience: 100 * time.Millisecond})
		defer e.Close()
		if v != nil { // it replaces the setting of an earlier engine
			book.KeepWith(e.SealRecord)
		}
		if _, err := e.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	enqueue := func(v *redact.Vault, w intent.WriteIntent) ledger.ID {
		t.Helper()
		tx := begin(t, file)
		id, err := sqlite.Outbox{Keys: v}.Enqueue(t.Context(), tx, w)
		if err != nil || tx.Commit() != nil {
			t.Fatal(err)
		}
		return id
	}
	w := private(intent.Create)
	id := enqueue(vaultOf(t, "k1"), w)
	for _, v := range []*redact.Vault{nil, vaultOf(t, "k2")} {
		resume(v)
		if _, err := book.Get(t.Context(), "acme", id); !errors.Is(err, ledger.ErrNoKey) {
			t.Errorf("got: %v, want that its key is missing", err)
		}
		if v != nil {
			e := b.sealingOn(book, nil, v, nil)
			if _, err := e.Do(t.Context(), w); !errors.Is(err, redact.ErrNoKey) || !strings.Contains(err.Error(), `"k1"`) {
				t.Errorf("asked for: %v, want the key that is missing", err)
			}
			e.Close()
		}
		if s, err := book.QueueStats(t.Context()); err != nil || s.Outbox != 1 || len(s.Refused) != 0 {
			t.Fatalf("%+v, %v; want that it waits", s, err)
		}
	}
	enqueue(vaultOf(t, "k2"), w) // once more, by a process that seals with another key
	moved := private(intent.Create)
	moved.Workflow, moved.Key = "wf-moved", intent.Fields{"order_id": "Canary-Moved"}
	other := enqueue(vaultOf(t, "k1"), moved)
	tx := begin(t, file)
	if _, err := tx.Exec("UPDATE ledger_outbox SET intent = (SELECT intent FROM ledger_outbox WHERE id = ?1) WHERE id = ?2", string(id), string(other)); err != nil || tx.Commit() != nil {
		t.Fatal(err)
	}
	filesAreClean(t, file)
	resume(vaultOf(t, "k2", "k1"))
	rec, err := book.Get(t.Context(), "acme", id)
	if err != nil || rec.Settlement != ledger.Verified || strings.Contains(text(t, rec), "Canary") || !strings.HasPrefix(rec.Digest, "hmac:k2:") {
		t.Errorf("%s, %v", text(t, rec), err)
	}
	if writes, _ := world.Count(); writes != 1 {
		t.Errorf("%d sends, want one", writes)
	}
	s, err := book.QueueStats(t.Context())
	if err != nil || s.Outbox != 0 || len(s.Refused) != 1 || s.Refused[0].ID != other {
		t.Errorf("%+v, %v; want what was moved refused", s, err)
	}
	filesAreClean(t, file)
	if err := book.Close(); err != nil {
		t.Error(err)
	}
}

// A write from an outbox states its limits as any other does: which parts were sent and never
// compared, whether it waited sealed or not.
func TestAnOutboxWriteSaysWhatIsNotCompared(t *testing.T) {
	for name, keys := range map[string]ledger.Keys{"in the clear": nil, "sealed": vaultOf(t, "k1")} {
		t.Run(name, func(t *testing.T) {
			world, err := orders.New(orders.Plain.Options())
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "ledger.db")
			book, err := sqlite.Open(t.Context(), file, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := book.Close(); err != nil {
					t.Error(err)
				}
			})
			e := (&bench{t: t, world: world}).engineOn(book, world.Destination(), &engine.Options{Vault: vaultOf(t, "k1")})
			w := order("A-1", intent.Create)
			w.Payload = intent.Fields{"note": "never read back"}
			tx := begin(t, file)
			id, err := sqlite.Outbox{Keys: keys}.Enqueue(t.Context(), tx, w)
			if err != nil || tx.Commit() != nil {
				t.Fatal(err)
			}
			if _, err := e.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			rec, err := book.Get(t.Context(), "acme", id)
			if out := engine.OutcomeOf(rec); err != nil || out.Status != ledger.Verified || !slices.Equal(out.NotChecked, []string{"/note"}) || !strings.Contains(out.ForModel, "/note") {
				t.Errorf("%+v, %v; want it verified, but for /note", out, err)
			}
		})
	}
}

// An entry that an outbox cannot take is refused where it is enqueued, with the reason.
func TestWhatAnOutboxCannotSealIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*intent.WriteIntent)
		vault  *redact.Vault
		says   string
	}{
		"no keys":           {func(*intent.WriteIntent) {}, nil, "/sensitive"},
		"a value in a name": {func(w *intent.WriteIntent) { w.IdempotencyKey = "pay 190919" }, vaultOf(t, "k1"), "/idempotency_key contains a sensitive value"},
		"a token":           {func(w *intent.WriteIntent) { w.Payload["note"] = "rbs1:x" }, vaultOf(t, "k1"), "/payload/note begins with"},
	} {
		w := private(intent.Create)
		c.change(&w)
		var keys ledger.Keys
		if c.vault != nil {
			keys = c.vault
		}
		if _, err := ledger.ToEnqueue(w, keys, func() (string, error) { return "", nil }); !errors.Is(err, intent.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
