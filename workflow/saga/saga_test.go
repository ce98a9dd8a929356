package saga_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/workflow/saga"
)

// bench is a runner on a ledger in memory before one simulated destination.
type bench struct {
	t      *testing.T
	world  *simulated.World
	ledger *ledger.Memory
	engine *engine.Engine
	runner *saga.Runner
}

func newBench(t *testing.T, o simulated.Options, opts *engine.Options) *bench {
	t.Helper()
	world, err := simulated.New(o)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, world: world, ledger: ledger.NewMemory()}
	b.engine = b.newEngine(opts)
	b.runner = saga.New(b.ledger, b.engine, nil)
	return b
}

func (b *bench) newEngine(opts *engine.Options) *engine.Engine {
	b.t.Helper()
	e := engine.New(b.ledger, b.registry(), opts)
	b.t.Cleanup(e.Close)
	return e
}

// registry has the orders, and the same without a way back as "letters".
func (b *bench) registry() *connectors.Registry {
	b.t.Helper()
	var reg connectors.Registry
	orders := b.world.Destination()
	letters := b.world.Destination()
	letters.Profiles = map[string]connectors.Profile{}
	for kind, p := range b.world.Destination().Profiles {
		p.Irreversible, p.Undo = []intent.WriteType{intent.Create}, nil
		letters.Profiles[kind] = p
	}
	for name, d := range map[string]connectors.Destination{"orders": orders, "letters": letters} {
		if err := reg.Register(name, d); err != nil {
			b.t.Fatal(err)
		}
	}
	return &reg
}

func (b *bench) set(f simulated.Fault) {
	b.t.Helper()
	if err := b.world.Set(f); err != nil {
		b.t.Fatal(err)
	}
}

// make creates an order.
func create(id string, class intent.Reversibility) intent.WriteIntent {
	return intent.WriteIntent{Tool: "orders.create", Destination: "orders", Kind: simulated.Kind,
		Key: intent.Fields{"order_id": id}, Write: intent.Create, Expect: intent.Fields{"currency": "EUR"}, Reversibility: class}
}

// four is a saga of four steps: two that can be undone, the pivot, and one that
// is repeated until it succeeds.
func four() saga.Plan {
	return saga.Plan{Tenant: "acme", ID: "saga-1", Steps: []saga.Step{
		{Name: "contact", Intent: create("C-1", intent.Compensable)},
		{Name: "ticket", Intent: create("T-1", intent.Compensable), After: []string{"contact"}},
		{Name: "pay", Intent: create("P-1", intent.Pivot), After: []string{"ticket"}},
		{Name: "mail", Intent: create("M-1", intent.Retryable), After: []string{"pay"}},
	}}
}

func (b *bench) begin(p saga.Plan) {
	b.t.Helper()
	if _, err := b.runner.Begin(context.Background(), p); err != nil {
		b.t.Fatalf("Begin: %v", err)
	}
}

// run runs the saga for at most that long.
func (b *bench) run(most time.Duration) saga.Saga {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	s, err := b.runner.Run(ctx, "acme", "saga-1")
	if err != nil {
		b.t.Fatalf("Run: %v", err)
	}
	return s
}

// resume has the saga go on where it had given up, for at most that long.
func (b *bench) resume(most time.Duration) saga.Saga {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	s, err := b.runner.Resume(ctx, "acme", "saga-1")
	if err != nil {
		b.t.Fatalf("Resume: %v", err)
	}
	return s
}

// want holds a saga against its state and the statuses of its steps.
func (b *bench) want(s saga.Saga, state saga.State, statuses ...engine.Status) {
	b.t.Helper()
	bad := s.State != state
	for i, status := range statuses {
		bad = bad || s.Steps[i].Status != status
	}
	if bad {
		b.t.Errorf("saga is %s, want %s %q\n%s", s.State, state, statuses, picture(s))
	}
}

func picture(s saga.Saga) string {
	text := fmt.Sprintf("%s: %s\n", s.State, s.Reason)
	for _, one := range s.Steps {
		text += fmt.Sprintf("  %-8s %-11s %s %s, undo %s %s\n", one.Name, one.Class, one.Status, one.Text, one.UndoStatus, one.UndoText)
	}
	return text
}

// there is which orders the destination has.
func (b *bench) there(want string) {
	b.t.Helper()
	got := ""
	for _, id := range []string{"C-1", "T-1", "P-1", "M-1"} {
		for range b.world.Records(id) {
			got += id[:1]
		}
	}
	if got != want {
		b.t.Errorf("the destination has %q, want %q", got, want)
	}
}

func TestAllIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, simulated.Unique.Options(), nil)
		b.begin(four())
		v := engine.StatusVerified
		b.want(b.run(time.Hour), saga.Done, v, v, v, v)
		b.there("CTPM")
	})
}

func TestAStepFailsAtEachPosition(t *testing.T) {
	for failing, c := range map[string]struct {
		reason, there string
		state         saga.State
	}{
		"C-1": {"nothing was done yet", "", saga.Undone},
		"T-1": {"the contact is undone", "", saga.Undone},
		"P-1": {"a pivot that is not applied turns the saga back", "", saga.Undone},
		"M-1": {"behind the pivot it is tried again, and then a person is asked", "CTP", saga.Review},
	} {
		t.Run(failing, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, simulated.Unique.Options(), nil)
				b.set(simulated.Fault{Vice: simulated.Refused, OrderID: failing, Ops: []simulated.Op{simulated.OpCreate}})
				b.begin(four())
				s := b.run(24 * time.Hour)
				if s.State != c.state {
					t.Errorf("%s: %s", c.reason, picture(s))
				}
				b.there(c.there)
			})
		})
	}
}
