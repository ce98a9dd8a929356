package engine_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// What an outbox holds for a destination that marks fields is taken in by nobody
// without keys, waits there with the reason, and is taken in sealed once a person
// lets it.
func TestOutboxWithoutKeys(t *testing.T) {
	world, err := simulated.New(simulated.Plain.Options())
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
	s, err := book.Survey(t.Context())
	if err != nil || len(s.Refused) != 1 || s.Refused[0].ID != id || !strings.Contains(s.Refused[0].Reason, "/order_id is sensitive at this destination") {
		t.Fatalf("%+v, %v", s.Refused, err)
	}
	noCanary(t, "the refusal", s.Refused[0].Reason)
	tx = begin(t, file)
	if _, err := tx.Exec("UPDATE ledger_outbox SET refused = NULL"); err != nil || tx.Commit() != nil {
		t.Fatal(err)
	}
	keyed := b.sealingOn(book, nil, vaultOf(t, "k1"), opts)
	b.sealingOn(book, nil, nil, opts) // one without keys beside it changes nothing
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
