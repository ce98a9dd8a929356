package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// A sensitive value of a write is sensitive in its undo, even where only the undo has it inside
// another text.
func TestUndoingsKeepWhatIsSensitiveInTheirWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			write  intent.WriteType
			change func(*intent.WriteIntent)
			reason string
		}{
			"an update": {intent.Update, func(w *intent.WriteIntent) {
				w.Expect = intent.Fields{"currency": "EUR"}
			}, "what it brings back names the former value of a marked field"},
			"a create": {intent.Create, func(w *intent.WriteIntent) {
				w.Expect, w.Payload = intent.Fields{"currency": "for " + canaryBefore}, intent.Fields{"note": canaryBefore}
			}, "what it requires names what the write had in a marked field"},
		} {
			b := discreet(t, orders.Plain.Options(), nil)
			if c.write == intent.Update {
				b.seed(intent.Fields{"order_id": canaryKey, "amount_cents": jsonNumber(5), "currency": "for " + canaryBefore, "note": canaryBefore}, "")
			}
			w := compensable(private(c.write))
			w.Sensitive, w.Payload, w.Context = []string{"/note"}, nil, nil
			c.change(&w)
			out := b.do(w)
			if got := b.undo(out.ID, unwanted); got.Status != ledger.Compensated {
				t.Errorf("%s: %+v%s", name, got, b.life(out.ID))
			}
			b.clean(out)
			if t.Failed() {
				t.Fatalf("%s: %s", name, c.reason)
			}
		}
	})
}

// A value that resembles a token is restored unchanged where nothing is sensitive.
func TestTokensFromDestinationsWherePatternsAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vault, err := redact.New([]redact.Key{{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")}}, redact.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b := newBench(t, orders.Plain.Options(), &engine.Options{Vault: vault})
		b.seed(intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5), "note": "rbs1:k1:not a token"}, "")
		w := compensable(order("A-1", intent.Update))
		w.Payload = intent.Fields{"note": "another"}
		out := b.do(w)
		if out.Status != ledger.Verified {
			t.Fatalf("%+v%s", out, b.life(out.ID))
		}
		if got := b.undo(out.ID, unwanted); got.Status != ledger.Compensated || b.world.Records("A-1")[0].Fields["note"] != "rbs1:k1:not a token" {
			t.Errorf("%+v %+v%s", got, b.world.Records("A-1"), b.life(out.Undoing))
		}
	})
}

// A reviewer's reason is redacted even where the destination is no longer known.
func TestReasonsAreCleanedWithoutADestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discreet(t, orders.Plain.Options(), nil)
		b.seed(intent.Fields{"order_id": canaryKey, "amount_cents": jsonNumber(5)}, "")
		out := b.do(private(intent.Create)) // another actor's record is there
		time.Sleep(time.Hour)
		elsewhere := engine.New(b.ledger, &connectors.Registry{}, &engine.Options{Vault: vaultOf(t, "k1")})
		defer elsewhere.Close()
		d := engine.Decision{Word: engine.WordAbandon, By: "kim", Reason: "it is about " + canaryKey + " and " + canaryNote}
		if got, err := elsewhere.Resolve(t.Context(), "acme", out.ID, d); err != nil || got.Status != ledger.Abandoned {
			t.Errorf("%+v, %v", got, err)
		}
		b.clean(out)
	})
}

// An intent that is refused because its names contain sensitive values is traced without them.
func TestSpansOfRefusedIntents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := newTape()
		b := discreet(t, orders.Plain.Options(), spans.options())
		for name, change := range map[string]func(*intent.WriteIntent){
			"a workflow":       func(w *intent.WriteIntent) { w.Workflow = "for " + canaryKey },
			"a step":           func(w *intent.WriteIntent) { w.Step = canaryNote },
			"a tool":           func(w *intent.WriteIntent) { w.Tool = canaryCurrency },
			"a correlation id": func(w *intent.WriteIntent) { w.CorrelationID = canaryKey },
			"a kind":           func(w *intent.WriteIntent) { w.Kind, w.Sensitive = canaryKey, []string{"/order_id"} },
			"a destination":    func(w *intent.WriteIntent) { w.Destination, w.Sensitive = canaryKey, []string{"/order_id"} },
		} {
			w := private(intent.Create)
			change(&w)
			if _, err := b.engine.Do(t.Context(), w); err == nil {
				t.Errorf("%s was taken", name)
			}
		}
		for _, s := range spans.Ended() {
			noCanary(t, "a span", s.Name()+text(t, s.Attributes())+s.Status().Description)
		}
		if len(spans.Ended()) == 0 {
			t.Error("no span")
		}
	})
}

// A value that resembles a token in an outbox intent, which was never checked, is treated as
// one.
func TestTokensFromAnOutbox(t *testing.T) {
	vault, err := redact.New([]redact.Key{{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")}}, redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := newBench(t, orders.Plain.Options(), &engine.Options{Vault: vault}).engine
	w := order("A-1", intent.Create)
	w.Payload = intent.Fields{"note": "rbs1:k1:not a token"}
	rec, err := ledger.NewRecord(w)
	if err == nil {
		rec, err = e.SealRecord(rec)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := e.Opened(rec); err != nil || got.Payload["note"] != w.Payload["note"] {
		t.Errorf("%v, %v; want it as it was", got.Payload, err)
	}
}
