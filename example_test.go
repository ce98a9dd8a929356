package readback_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// table is a destination of one's own: records under a unique key.
type table struct {
	key string // the field that is unique
	mu  sync.Mutex
	all []connectors.Record
}

func (t *table) Write(_ context.Context, r connectors.Request) (connectors.Receipt, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := r.Intent.Key[t.key]
	if slices.ContainsFunc(t.all, func(rec connectors.Record) bool { return rec.Fields[t.key] == id }) {
		return connectors.Receipt{}, connectors.Conflict("409", errors.New("a record with this key exists"))
	}
	fields := maps.Clone(r.Intent.Expect)
	fields[t.key] = id
	t.all = append(t.all, connectors.Record{Ref: fmt.Sprint(id), Stamp: r.Stamp, Fields: fields})
	return connectors.Receipt{Ref: fmt.Sprint(id)}, nil
}

func (t *table) Read(_ context.Context, q connectors.Query) (connectors.Observation, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := connectors.Observation{Strength: connectors.Strong, At: time.Now()}
	for _, rec := range t.all {
		if rec.Stamp == q.Stamp || rec.Fields[t.key] == q.Intent.Key[t.key] {
			seen.Records = append(seen.Records, rec)
		}
	}
	return seen, nil
}

// The profile declares what the destination can do.
func (t *table) destination(kind string) connectors.Destination {
	return connectors.Destination{Connector: t, Profiles: map[string]connectors.Profile{kind: {
		Stamped: true,                              // records have our stamp, and reads show it
		Unique:  []intent.WriteType{intent.Create}, // a second create of one key is refused
		Settle:  connectors.Within(0),
		Horizon: connectors.Within(30 * time.Second),
	}}}
}

// A first write. The lines are those of doc.go.
func Example() {
	ctx, shop := context.Background(), (&table{key: "order_id"}).destination("order")
	type Order struct {
		ID     string `json:"order_id" readback:"key"`
		Amount int    `json:"amount_cents"`
	}

	var reg connectors.Registry
	err := reg.Register("orders", shop)
	if err != nil {
		panic(err)
	}
	eng := engine.New(ledger.NewMemory(), &reg, nil) // or sqlite.Open, postgres.Open
	defer eng.Close()

	w, err := intent.From(intent.WriteIntent{
		Tenant: "acme", Workflow: "run-42", Step: "charge", Tool: "charge_card",
		Destination: "orders", Kind: "order", Write: intent.Create,
	}, Order{ID: "INV-7721", Amount: 1999})
	if err != nil {
		panic(err)
	}
	out, err := eng.Do(ctx, w)
	fmt.Println(out.Status, out.Replayed, err)
	out, err = eng.Do(ctx, w) // the same outcome; nothing is sent
	fmt.Println(out.Status, out.Replayed, err)
	// Output:
	// verified false <nil>
	// verified true <nil>
}

// The Go of README.md.
func Example_readme() {
	var reg connectors.Registry
	_ = reg.Register("orders", (&table{key: "order_id"}).destination("order"))
	ctx, runID, eng := context.Background(), "run-42", engine.New(ledger.NewMemory(), &reg, nil)
	defer eng.Close()

	type Order struct {
		ID     string `json:"order_id" readback:"key"`
		Amount int    `json:"amount_cents"`
	}
	w, err := intent.From(intent.WriteIntent{
		Tenant: "acme", Workflow: runID, Step: "charge", Tool: "charge_card",
		Destination: "orders", Kind: "order", Write: intent.Create,
	}, Order{ID: "INV-7721", Amount: 1999})
	if err != nil {
		panic(err)
	}
	out, err := eng.Do(ctx, w) // eng := engine.New(store, registry, nil)
	if err != nil {
		panic(err)
	}
	switch out.Status {
	case ledger.Verified: // the order exists, exactly as declared: out.Ref
		fmt.Println(out.Ref)
	case ledger.NotApplied: // the order is known not to exist
	case ledger.StatusReview: // not known; a reviewer decides: out.ID, out.Text
	}
	// Output: INV-7721
}
