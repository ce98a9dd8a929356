package saga_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// bench is a runner on a ledger in memory before one simulated destination.
type bench struct {
	t      *testing.T
	world  *orders.World
	ledger *ledger.Memory
	engine *engine.Engine
	runner *saga.Runner
}

func newBench(t *testing.T, o orders.Options, opts *engine.Options) *bench {
	t.Helper()
	world, err := orders.New(o)
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

func (b *bench) set(f orders.Fault) {
	b.t.Helper()
	if err := b.world.Set(f); err != nil {
		b.t.Fatal(err)
	}
}

// create is an intent that creates an order.
func create(id string, class intent.Reversibility) intent.WriteIntent {
	return intent.WriteIntent{Tool: "orders.create", Destination: "orders", Kind: orders.Kind,
		Key: intent.Fields{"order_id": id}, Write: intent.Create, Expect: intent.Fields{"currency": "EUR"}, Reversibility: class}
}

// four is a saga of four steps: two that can be undone, the pivot, and one that is repeated until
// it succeeds.
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

// resume continues a saga that had given up, for at most that long.
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

// want checks the state of a saga and the statuses of its steps.
func (b *bench) want(s saga.Saga, state saga.State, statuses ...ledger.Status) {
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

// there checks which orders the destination has.
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
		b := newBench(t, orders.Unique.Options(), nil)
		b.begin(four())
		v := ledger.Verified
		b.want(b.run(time.Hour), saga.Done, v, v, v, v)
		b.there("CTPM")
	})
}

// The write of a step states its limits as any other does: which fields were sent and never
// compared.
func TestAStepSaysWhatIsNotCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		p := four()
		p.Steps[0].Intent.Payload = intent.Fields{"note": "never read back"}
		b.begin(p)
		one := b.run(time.Minute).Steps[0]
		rec, err := b.ledger.Get(t.Context(), "acme", one.WriteID)
		if out := engine.OutcomeOf(rec); err != nil || out.Status != ledger.Verified || !slices.Equal(out.NotChecked, []string{"/note"}) {
			t.Errorf("%+v, %v; want it verified, but for /note", out, err)
		}
	})
}

// A step marks text of a destination as the outcomes of its writes do, and no reason of the saga
// has an invisible character.
func TestAStepMarksTextOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.begin(four())
		if one := b.run(24 * time.Hour).Steps[0]; !slices.Equal(one.Untrusted, []string{"/ref", "/url"}) {
			t.Errorf("of a verified step %q is marked, want its names", one.Untrusted)
		}
		b = newBench(t, orders.Unique.Options(), nil)
		b.set(orders.Fault{Kind: orders.Refused, Key: "T-1", Ops: []orders.Op{orders.OpCreate}})
		b.set(orders.Fault{Kind: orders.Refused, Key: "C-1", Ops: []orders.Op{orders.OpDelete}})
		b.begin(four())
		s := b.run(24 * time.Hour)
		if got := [][]string{s.Steps[0].Untrusted, s.Steps[1].Untrusted}; !slices.Equal(got[0], []string{"/text", "/undo_text"}) || !slices.Equal(got[1], []string{"/text"}) {
			t.Errorf("marked is %q\n%s", got, picture(s))
		}
	})
	b := newBench(t, orders.Unique.Options(), nil)
	b.begin(four())
	s, err := b.runner.Cancel(t.Context(), "acme", "saga-1", "ada", "no\u200bt\n wanted")
	if err != nil {
		t.Fatal(err)
	}
	if s.Back == nil || s.Back.Reason != `no\u200bt\n wanted` || strings.Contains(s.Reason, "\u200b") {
		t.Errorf("it goes back since %+v: %q", s.Back, s.Reason)
	}
}

func TestAStepFailsAtEachPosition(t *testing.T) {
	for failing, c := range map[string]struct {
		reason, there string
		state         saga.State
	}{
		"C-1": {"nothing was done yet", "", saga.Undone},
		"T-1": {"the contact is undone", "", saga.Undone},
		"P-1": {"a pivot that is not applied makes the saga go back", "", saga.Undone},
		"M-1": {"behind the pivot it is tried again, and then a reviewer is asked", "CTP", saga.Review},
	} {
		t.Run(failing, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				b.set(orders.Fault{Kind: orders.Refused, Key: failing, Ops: []orders.Op{orders.OpCreate}})
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
