package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// coded is a destination whose code for a refusal quotes what it refuses.
type coded struct{ connectors.Connector }

func (c coded) Write(_ context.Context, r connectors.Request) (connectors.Receipt, error) {
	return connectors.Receipt{}, connectors.Refused("422 "+r.Intent.Key["order_id"].(string), errors.New("no"))
}

// heeds is a guard that keeps the reported codes, like guards that explain why they hold other
// writes back.
type heeds struct {
	engine.Unguarded
	codes []string
}

func (h *heeds) Enter(context.Context, ledger.Record) (func(engine.Sent), *engine.Hold) {
	return func(s engine.Sent) { h.codes = append(h.codes, s.Code) }, nil
}

// A destination's code may quote the request, as its sentences may.
func TestCodesAreCleaned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, guards := newBench(t, orders.Plain.Options(), nil), &heeds{}
		b.engine = b.sealingOn(b.ledger, coded{b.world.Destination().Connector}, vaultOf(t, "k1"), &engine.Options{Guards: guards})
		out := b.do(private(intent.Create))
		if out.Status != ledger.NotApplied {
			t.Fatalf("%+v%s", out, b.life(out.ID))
		}
		events, err := b.ledger.Events(t.Context(), "acme", out.ID)
		if err != nil {
			t.Fatal(err)
		}
		var codes []string
		for _, e := range events {
			if e.Kind == ledger.EvSent {
				codes = append(codes, e.Code)
			}
		}
		if len(codes) != 1 || !strings.HasPrefix(codes[0], "422 "+redact.ShownPrefix) {
			t.Errorf("codes %q; want the one without what it quotes", codes)
		}
		if diff := cmp.Diff(codes, guards.codes); diff != "" {
			t.Errorf("guards receive another code than is kept (-kept +received):\n%s", diff)
		}
		b.clean(out)
	})
}

// A read's reason is redacted whatever its source: here a sensitive value reads like the
// sentence.
func TestReasonsOfReadsAreRedacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discreet(t, orders.Plain.Options(), nil)
		b.seed(intent.Fields{"order_id": canaryKey, "amount_cents": jsonNumber(5)}, "")
		reason := func(note string) string {
			t.Helper()
			w := private(intent.Create)
			w.Payload = intent.Fields{"note": note}
			found, err := b.engine.ReadBack(t.Context(), w, engine.ReadBackCase{})
			if err != nil {
				t.Fatal(err)
			}
			return found.Reason
		}
		shown := reason(canaryNote)
		if got := reason(shown); shown == "" || strings.Contains(got, shown) || !strings.Contains(got, redact.ShownPrefix) {
			t.Errorf("shown %q, then %q", shown, got)
		}
	})
}
