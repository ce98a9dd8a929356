package receipt_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/signing"
)

const version = "v1.2.3"

// bench is an engine on a ledger in memory before a simulated destination.
type bench struct {
	t       *testing.T
	world   *orders.World
	ledger  *ledger.Memory
	engine  *engine.Engine
	profile connectors.Profile
}

func newBench(t *testing.T, o orders.Options) *bench {
	t.Helper()
	world, err := orders.New(o)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, world: world, ledger: ledger.NewMemory()}
	var reg connectors.Registry
	if err := reg.Register("orders", world.Destination()); err != nil {
		t.Fatal(err)
	}
	b.engine = engine.New(b.ledger, &reg, nil)
	t.Cleanup(b.engine.Close)
	if _, b.profile, err = reg.Lookup("orders", orders.Kind); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) set(f orders.Fault) {
	b.t.Helper()
	if err := b.world.Set(f); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) seed() {
	b.t.Helper()
	if _, err := b.world.Seed(intent.Fields{"order_id": "A-1", "amount_cents": json.Number("5"), "currency": "EUR"}, ""); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) do(w intent.WriteIntent) engine.Outcome {
	b.t.Helper()
	out, err := b.engine.Do(context.Background(), w)
	if err != nil {
		b.t.Fatalf("Do: %v", err)
	}
	return out
}

// life is a write as stored in the ledger.
func (b *bench) life(id ledger.ID) (ledger.Record, []ledger.Event) {
	b.t.Helper()
	rec, err := b.ledger.Get(b.t.Context(), "acme", id)
	if err != nil {
		b.t.Fatal(err)
	}
	events, err := b.ledger.Events(b.t.Context(), "acme", id)
	if err != nil {
		b.t.Fatal(err)
	}
	return rec, events
}

func (b *bench) receipt(id ledger.ID, o receipt.Options) (receipt.Statement, error) {
	b.t.Helper()
	rec, events := b.life(id)
	o.Version = version
	if rec.Child != "" {
		o.Undoing, o.UndoingEvents = b.life(rec.Child)
	}
	return receipt.Of(rec, events, b.profile, o)
}

func order(write intent.WriteType) intent.WriteIntent {
	w := intent.WriteIntent{
		Tenant: "acme", Workflow: "wf-1", Step: "pay", Tool: "orders." + string(write),
		Destination: "orders", Kind: orders.Kind,
		Key: intent.Fields{"order_id": "A-1"}, Write: write,
	}
	if write != intent.Delete {
		w.Expect = intent.Fields{"amount_cents": json.Number("1999"), "currency": "USD"}
	}
	return w
}

// pair is a key, both halves.
type pair struct {
	signer  *signing.Signer
	keys    signing.Keys
	private []byte
	public  []byte
}

func newPair(tb testing.TB) pair {
	tb.Helper()
	private, public, err := signing.Generate()
	if err != nil {
		tb.Fatal(err)
	}
	p := pair{private: private, public: public}
	if p.signer, err = signing.ReadSigner(private); err != nil {
		tb.Fatal(err)
	}
	if p.keys, err = signing.ReadKeys(public); err != nil {
		tb.Fatal(err)
	}
	return p
}

// signed is a statement as its recipient gets it.
func (p pair) signed(tb testing.TB, s receipt.Statement) []byte {
	tb.Helper()
	e, err := s.Sign(context.Background(), p.signer)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := e.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	return text
}
