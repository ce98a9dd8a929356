package service_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// scoped is an agent whose token has a scope.
func scoped(s *engine.Scope) service.Who {
	w := who(engine.RoleAgent)
	w.Scope = s
	return w
}

// scopes are those that do not cover the write of [order], by the field that is outside.
var scopes = map[string]*engine.Scope{
	"/destination":         {Destinations: []string{"tickets"}},
	"/kind":                {Kinds: []string{"invoice"}},
	"/write":               {Writes: []intent.WriteType{intent.Update}},
	"/tool":                {Tools: []string{"refund"}},
	"/expect/amount_cents": {Max: []engine.Ceiling{{Field: "/amount_cents", Most: "10"}}},
}

// What is outside of the scope is refused wherever a write, a saga or a step can be
// requested, and nothing is recorded or sent.
func TestOutsideOfTheScope(t *testing.T) {
	step := func(change func(*saga.Step)) saga.Plan {
		p := plan()
		p.Steps[0].Intent = order("S-1", nil)
		p.Steps[0].Intent.Workflow, p.Steps[0].Intent.Step = "", ""
		change(&p.Steps[0])
		return p
	}
	undone := func(of *saga.Step) {
		of.Intent.Reversibility = intent.Compensable
		undo := intent.WriteIntent{Write: intent.Update, Expect: intent.Fields{"amount_cents": json.Number("0")}}
		of.Undo = &undo
	}
	for field, s := range scopes {
		t.Run(field, func(t *testing.T) {
			f := newFixture(t)
			as := scoped(s)
			refused := func(what, at string, err error) {
				t.Helper()
				var outside *engine.ScopeError
				if !errors.As(err, &outside) || outside.Field != at || !strings.Contains(err.Error(), "this token may") {
					t.Errorf("%s: %v; want %s named", what, err, at)
				}
			}
			_, err := f.Submit(t.Context(), as, order("A-1", nil), time.Minute)
			refused("Submit", field, err)
			_, err = f.BeginSaga(t.Context(), as, step(func(*saga.Step) {}))
			refused("BeginSaga", field, err)
			var bad *saga.PlanError
			if !errors.As(err, &bad) || bad.Path != "/steps/0/intent"+field {
				t.Errorf("BeginSaga names %+v", bad)
			}
			f.nothing(t)
			// The same, made by another caller, is not shown either.
			out, err := f.Submit(t.Context(), who(engine.RoleAgent), order("A-1", nil), time.Minute)
			if err != nil || out.Status != ledger.Verified {
				t.Fatalf("%+v, %v", out, err)
			}
			if _, err := f.BeginSaga(t.Context(), who(engine.RoleAgent), step(func(*saga.Step) {})); err != nil {
				t.Fatal(err)
			}
			again, err := f.Submit(t.Context(), as, order("A-1", nil), time.Minute)
			refused("Submit again", field, err)
			if again.ID != "" {
				t.Errorf("the outcome of another caller's write: %+v", again)
			}
			if got, err := f.BeginSaga(t.Context(), as, step(func(*saga.Step) {})); err == nil || got.ID != "" {
				t.Errorf("the saga of another caller: %+v, %v", got, err)
			}
			if _, _, err := f.Begun(t.Context(), as, order("A-1", nil)); err == nil {
				t.Error("Begun gives the intent of another caller's write")
			}
			if strings.HasPrefix(field, "/expect") {
				return // an amount bounds a request, not a read
			}
			for _, wait := range []time.Duration{0, time.Minute} {
				_, err = f.Outcome(t.Context(), as, out.ID, wait)
				_, none := f.Outcome(t.Context(), as, "wr_none", wait)
				if !errors.Is(err, ledger.ErrNotFound) || strings.Replace(err.Error(), string(out.ID), "wr_none", 1) != none.Error() {
					t.Errorf("Outcome: %v; of one that is not there: %v", err, none)
				}
			}
			_, err = f.Final(t.Context(), as, out.ID, time.Minute)
			_, sagaErr := f.Saga(t.Context(), as, "trip-1")
			_, none := f.Saga(t.Context(), as, "trip-0")
			if !errors.Is(err, ledger.ErrNotFound) || !errors.Is(sagaErr, saga.ErrNotFound) || strings.Replace(sagaErr.Error(), "trip-1", "trip-0", 1) != none.Error() {
				t.Errorf("Final: %v, Saga: %v, one that is not there: %v", err, sagaErr, none)
			}
		})
	}
	// The undoing of a step is a write of the plan.
	f := newFixture(t)
	as := scoped(&engine.Scope{Writes: []intent.WriteType{intent.Create}})
	var bad *saga.PlanError
	if _, err := f.BeginSaga(t.Context(), as, step(undone)); !errors.As(err, &bad) || bad.Path != "/steps/0/undo/write" || !errors.Is(err, engine.ErrForbidden) {
		t.Errorf("a plan whose undoing is outside: %v", err)
	}
	if _, err := f.Submit(t.Context(), scoped(scopes["/destination"]), order("A-1", func(w *intent.WriteIntent) { w.Destination = "none" }), 0); !errors.Is(err, connectors.ErrUnknownDestination) {
		t.Errorf("a destination that there is none of: %v", err)
	}
	f.nothing(t)
	if s, err := f.BeginSaga(t.Context(), scoped(&engine.Scope{Writes: []intent.WriteType{intent.Create, intent.Update}}), step(undone)); err != nil || s.ID == "" {
		t.Errorf("a plan within the scope: %v", err)
	}
}

// nothing fails if something was recorded or sent.
func (f fixture) nothing(t *testing.T) {
	t.Helper()
	records, err := f.ledger.List(t.Context(), ledger.Filter{Tenant: "acme"})
	sagas, sagaErr := f.Sagas(t.Context(), who(engine.RoleOperator), 10)
	if err != nil || sagaErr != nil || len(records)+len(sagas)+len(f.world.Calls()) > 0 {
		t.Errorf("%d writes and %d sagas are recorded, %d calls were made, %v %v", len(records), len(sagas), len(f.world.Calls()), err, sagaErr)
	}
}

// What a scope covers goes its way, and lists have no more than that.
func TestWithinTheScope(t *testing.T) {
	f := newFixture(t)
	as := scoped(&engine.Scope{Destinations: []string{"orders"}, Writes: []intent.WriteType{intent.Create}, Tools: []string{"charge"},
		Max: []engine.Ceiling{{Field: "/amount_cents", Most: "1999"}}})
	out, err := f.Submit(t.Context(), as, order("A-1", nil), time.Minute)
	if err != nil || out.Status != ledger.Verified {
		t.Fatalf("%+v, %v", out, err)
	}
	if got, err := f.Outcome(t.Context(), as, out.ID, time.Minute); err != nil || got.Status != ledger.Verified {
		t.Errorf("%+v, %v", got, err)
	}
	for _, stop := range []string{"", "orders"} {
		if err := f.Stop(t.Context(), who(engine.RoleOperator), guards.Scope{Destination: stop}, "it is down"); err != nil {
			t.Fatal(err)
		}
	}
	other := scoped(&engine.Scope{Destinations: []string{"tickets"}})
	all, err := f.Destinations(t.Context(), as)
	none, noErr := f.Destinations(t.Context(), other)
	if err != nil || noErr != nil || len(all) != 1 || len(none) != 0 {
		t.Errorf("destinations: %d and %d, %v %v", len(all), len(none), err, noErr)
	}
	stops, err := f.Stops(t.Context(), as)
	some, someErr := f.Stops(t.Context(), other)
	if err != nil || someErr != nil || len(stops) != 2 || len(some) != 1 || some[0].Destination != "" {
		t.Errorf("stops: %+v and %+v, %v %v", stops, some, err, someErr)
	}
	if _, _, err := f.Follow(t.Context(), as, "", 0); !errors.Is(err, access.ErrForbidden) {
		t.Errorf("the events of the tenant: %v", err)
	}
}

// A key that a write outside of the scope has used is refused, and nothing of that write
// is shown.
func TestAKeyOfAWriteOutsideOfTheScope(t *testing.T) {
	f := newFixture(t)
	keyed := func(kind string) intent.WriteIntent {
		return order("A-1", func(w *intent.WriteIntent) { w.Workflow, w.IdempotencyKey = kind, "charge:A-1" })
	}
	first, err := f.Submit(t.Context(), who(engine.RoleAgent), keyed("run-1"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	changed := keyed("run-2")
	changed.Write, changed.Expect = intent.Update, intent.Fields{"currency": "EUR"}
	_, err = f.Submit(t.Context(), scoped(&engine.Scope{Writes: []intent.WriteType{intent.Update}}), changed, time.Minute)
	var blocked *ledger.BlockedError
	if !errors.Is(err, ledger.ErrBlocked) || errors.As(err, &blocked) || strings.Contains(err.Error(), string(first.ID)) || !strings.Contains(err.Error(), "asks for something else") {
		t.Errorf("%v", err)
	}
}

// Nor is it at the gate.
func TestAStepWithAKeyOfAWriteOutsideOfTheScope(t *testing.T) {
	f := newFixture(t)
	first, err := f.Submit(t.Context(), who(engine.RoleAgent), order("A-1", func(w *intent.WriteIntent) { w.IdempotencyKey = "charge:A-1" }), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	const changed = `{"destination":"orders","kind":"order","write":"update","key":{"order_id":"A-1"},"expect":{"currency":"EUR"}}`
	ask := func(s *engine.Scope) string {
		t.Helper()
		c := gate.Caller{Tenant: "acme", Name: "bot", Role: engine.RoleAgent, Scope: s}
		made, err := f.gate.Create(t.Context(), c, gate.CreateRequest{WorkflowName: "refund"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.gate.Gate(t.Context(), c, made.WorkflowID, "a", gate.GateRequest{StepType: "tool_call", IdempotencyKey: "charge:A-1",
			ToolContext: &gate.ToolContext{ToolName: "charge"}, Intent: json.RawMessage(changed)})
		if err != nil || got.Decision != gate.Block || got.Prior == nil || !got.Prior.PriorDiffers {
			t.Fatalf("%+v, %v", got, err)
		}
		all, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		return string(all)
	}
	if got := ask(nil); !strings.Contains(got, string(first.ID)) || !strings.Contains(got, "verified") {
		t.Errorf("without a scope: %s", got)
	}
	got := ask(&engine.Scope{Writes: []intent.WriteType{intent.Update}})
	for _, of := range []string{string(first.ID), "run-", "verified", "1999"} {
		if strings.Contains(got, of) {
			t.Errorf("%s is shown: %s", of, got)
		}
	}
}

// A step is refused at the gate by its intent or, where it has none, by its tool; what
// was recorded of it is neither reported, ended nor shown.
func TestStepsOutsideOfTheScope(t *testing.T) {
	f := newFixture(t)
	wide, narrow := gate.Caller{Tenant: "acme", Name: "bot", Role: engine.RoleAgent}, gate.Caller{Tenant: "acme", Name: "bot", Role: engine.RoleAgent, Scope: &engine.Scope{Tools: []string{"charge"}}}
	made, err := f.gate.Create(t.Context(), narrow, gate.CreateRequest{WorkflowName: "refund"})
	if err != nil {
		t.Fatal(err)
	}
	id := made.WorkflowID
	tool := func(name string) gate.GateRequest {
		return gate.GateRequest{StepType: "tool_call", ToolContext: &gate.ToolContext{ToolName: name}}
	}
	refused := func(what string, err error) {
		t.Helper()
		var e *gate.Error
		if !errors.As(err, &e) || e.Code != gate.Forbidden || e.Field == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = f.gate.Gate(t.Context(), narrow, id, "wire", tool("wire"))
	refused("another tool", err)
	if _, err := f.gate.Gate(t.Context(), narrow, id, "charge", tool("charge")); err != nil {
		t.Fatal(err)
	}
	bounded := narrow
	bounded.Scope = &engine.Scope{Destinations: []string{"orders"}}
	_, err = f.gate.Gate(t.Context(), bounded, id, "charge-2", tool("charge"))
	refused("no intent", err)
	if _, err := f.gate.CompleteStep(t.Context(), narrow, id, "charge", gate.CompleteRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.gate.Gate(t.Context(), wide, id, "wire", tool("wire")); err != nil {
		t.Fatal(err)
	}
	_, err = f.gate.Gate(t.Context(), narrow, id, "wire", gate.GateRequest{StepType: "tool_call", RetryPolicy: "reevaluate", ToolContext: &gate.ToolContext{ToolName: "charge"}})
	refused("the step under another tool", err)
	_, err = f.gate.CompleteStep(t.Context(), narrow, id, "wire", gate.CompleteRequest{})
	refused("its report", err)
	for what, end := range map[string]func() error{
		"complete": func() error { _, err := f.gate.Complete(t.Context(), narrow, id, ""); return err },
		"fail":     func() error { _, err := f.gate.Fail(t.Context(), narrow, id, ""); return err },
		"abort":    func() error { _, err := f.gate.Abort(t.Context(), narrow, id, ""); return err },
		"resume":   func() error { _, err := f.gate.Resume(t.Context(), narrow, id, ""); return err },
	} {
		refused(what, end())
	}
	seen, err := f.gate.Get(t.Context(), narrow, id)
	all, allErr := f.gate.Get(t.Context(), wide, id)
	if err != nil || allErr != nil || len(seen.Steps) != 1 || len(all.Steps) != 2 || all.Status != gate.InProgress || all.Steps[1].CompletedAt != nil {
		t.Errorf("it sees %+v of %+v, %v %v", seen.Steps, all, err, allErr)
	}
}
