package service_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

// counts are those of an effect, without states in which there is no write.
func counts(e service.StopEffect) map[ledger.State]int {
	some := map[ledger.State]int{}
	for _, w := range e.Writes {
		if w.Count > 0 {
			some[w.State] = w.Count
		}
	}
	return some
}

// What a stop would affect is counted by destination and tool, of the own tenant, and
// nothing is stopped by it.
func TestEffectOfAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for i, change := range []func(*intent.WriteIntent){held,
			func(w *intent.WriteIntent) { held(w); w.Workflow = "run-2" },
			func(w *intent.WriteIntent) { held(w); w.Tool = "refund" },
			nil, // it is verified
		} {
			if _, err := f.Submit(t.Context(), who(engine.RoleAgent), order(string(rune('A'+i)), change), time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		waiting := plan()
		waiting.Steps[0].Intent.Risk = intent.RiskApprove
		if _, err := f.BeginSaga(t.Context(), who(engine.RoleAgent), waiting); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		operator, outsider := who(engine.RoleOperator), service.Who{Tenant: "umbrella", Name: "eve", Role: engine.RoleOperator}
		for name, c := range map[string]struct {
			who              service.Who
			scope            guards.Scope
			want             map[ledger.State]int
			workflows, sagas int
			stopped          bool
		}{
			"all":            {operator, guards.Scope{}, map[ledger.State]int{ledger.Held: 3}, 2, 1, false},
			"destination":    {operator, guards.Scope{Destination: "orders"}, map[ledger.State]int{ledger.Held: 3}, 2, 1, false},
			"tool":           {operator, guards.Scope{Tool: "refund"}, map[ledger.State]int{ledger.Held: 1}, 1, 0, false},
			"both":           {operator, guards.Scope{Destination: "orders", Tool: "charge"}, map[ledger.State]int{ledger.Held: 2}, 2, 1, false},
			"unused tool":    {operator, guards.Scope{Tool: "wire"}, map[ledger.State]int{}, 0, 0, false},
			"another tenant": {outsider, guards.Scope{}, map[ledger.State]int{}, 0, 0, false},
		} {
			e, err := f.StopEffect(t.Context(), c.who, c.scope)
			if err != nil || e.Workflows != c.workflows || e.Sagas != c.sagas || e.More {
				t.Errorf("%s: %d workflows and %d sagas, want %d and %d; more %t, error %v", name, e.Workflows, e.Sagas, c.workflows, c.sagas, e.More, err)
			}
			if diff := cmp.Diff(c.want, counts(e)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if stops, err := f.Stops(t.Context(), operator); err != nil || len(stops) > 0 {
			t.Errorf("a preview stops %v, %v", stops, err)
		}
		if _, err := f.StopEffect(t.Context(), operator, guards.Scope{Destination: "nowhere"}); !errors.Is(err, connectors.ErrUnknownDestination) {
			t.Errorf("of an unknown destination: %v", err)
		}
		if _, err := f.StopEffect(t.Context(), operator, guards.Scope{Tenant: "umbrella"}); !errors.Is(err, service.ErrTenant) {
			t.Errorf("of another tenant: %v", err)
		}
		if err := f.Stop(t.Context(), operator, guards.Scope{Destination: "orders"}, "for the test"); err != nil {
			t.Fatal(err)
		}
		for scope, want := range map[guards.Scope]int{{Destination: "orders"}: 1, {Destination: "orders", Tool: "charge"}: 1, {}: 0, {Tool: "charge"}: 0} {
			if e, err := f.StopEffect(t.Context(), operator, scope); err != nil || len(e.Stops) != want {
				t.Errorf("%s: %d stops hold it already, want %d; %v", scope, len(e.Stops), want, err)
			}
		}
	})
}

// endless has more open writes than are read for a preview.
type endless struct{ ledger.Ledger }

func (endless) Find(context.Context, ledger.Search) (ledger.SearchResult, error) {
	return ledger.SearchResult{Records: make([]ledger.Record, 200), Next: "w1"}, nil
}

func TestEffectOfAStopIsBounded(t *testing.T) {
	e, err := service.EffectOf(t.Context(), endless{ledger.NewMemory()}, nil, guards.Scope{Tenant: "acme"})
	if err != nil || !e.More || e.Workflows != 1 {
		t.Errorf("%+v, %v; want that more was not counted", e, err)
	}
}
