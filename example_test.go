package readback_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// notes is a destination of one's own: a list of notes with client-made ids.
type notes struct {
	mu  sync.Mutex
	all []connectors.Record
}

func (n *notes) Write(_ context.Context, r connectors.Request) (connectors.Receipt, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := r.Intent.Key["id"]
	taken := slices.ContainsFunc(n.all, func(rec connectors.Record) bool { return rec.Fields["id"] == id })
	if taken {
		return connectors.Receipt{}, connectors.Conflict("409", errors.New("a note with this id exists"))
	}
	n.all = append(n.all, connectors.Record{
		Ref: fmt.Sprint(id), Stamp: r.Stamp,
		Fields: intent.Fields{"id": id, "text": r.Intent.Expect["text"]},
	})
	return connectors.Receipt{Ref: fmt.Sprint(id)}, nil
}

func (n *notes) Read(_ context.Context, q connectors.Query) (connectors.Observation, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := connectors.Observation{Strength: connectors.Strong, At: time.Now()}
	for _, rec := range n.all {
		if rec.Stamp == q.Stamp || rec.Fields["id"] == q.Intent.Key["id"] {
			seen.Records = append(seen.Records, rec)
		}
	}
	return seen, nil
}

// A connector of one's own: write once, read every match, and say in the
// profile what the destination can do.
func Example_connector() {
	var reg connectors.Registry
	_ = reg.Register("notes", connectors.Destination{
		Connector: &notes{},
		Profiles: map[string]connectors.Profile{"note": {
			Stamped: true,                              // records bear our stamp, and reads show it
			Unique:  []intent.WriteType{intent.Create}, // a second create of one id is refused
			Settle:  connectors.Within(0),
			Horizon: connectors.Within(30 * time.Second),
		}},
	})
	eng := engine.New(ledger.NewMemory(), &reg, nil)
	defer eng.Close()
	out, err := eng.Do(context.Background(), intent.WriteIntent{
		Tenant: "acme", Workflow: "run-42", Tool: "take_note", Destination: "notes", Kind: "note",
		Write: intent.Create, Key: intent.Fields{"id": "n-1"}, Expect: intent.Fields{"text": "call Ada"},
	})
	fmt.Println(out.Status, out.Ref, err)
	// Output: verified n-1 <nil>
}
