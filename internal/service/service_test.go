package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/saga"
)

// fixture is a service with all its parts, with a simulated order destination.
type fixture struct {
	*service.Service
	world  *orders.World
	ledger *ledger.Memory
	gate   *gate.Gate
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	world, err := orders.New(orders.Plain.Options())
	if err != nil {
		t.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("orders", world.Destination()); err != nil {
		t.Fatal(err)
	}
	book := ledger.NewMemory()
	e := engine.New(book, &reg, &engine.Options{Risks: []policies.RiskRule{{Tool: "wire_*", Class: intent.RiskApprove}}})
	t.Cleanup(e.Close)
	gate := gate.New(book, &gate.Options{Reader: e})
	return fixture{service.New(service.Parts{Writes: e, Ledger: book, Registry: &reg, Steps: gate,
		Sagas: saga.New(book, e, nil), Types: map[string]string{"orders": "simulated"}, ReviewUI: "https://readback.example"}), world, book, gate}
}

func who(role engine.Role) service.Who {
	return service.Who{Tenant: "acme", Name: string(role) + "-1", Role: role, Via: "token"}
}

func order(id string, change func(*intent.WriteIntent)) intent.WriteIntent {
	w := intent.WriteIntent{Workflow: "run-1", Step: "charge-" + id, Tool: "charge", Destination: "orders", Kind: orders.Kind,
		Write: intent.Create, Key: intent.Fields{"order_id": id}, Expect: intent.Fields{"amount_cents": json.Number("1999"), "currency": "EUR"}}
	if change != nil {
		change(&w)
	}
	return w
}

func held(w *intent.WriteIntent) { w.Risk = intent.RiskApprove }

func plan() saga.Plan {
	return saga.Plan{ID: "trip-1", Steps: []saga.Step{{Name: "one", Intent: intent.WriteIntent{Tool: "charge", Destination: "orders", Kind: orders.Kind,
		Write: intent.Create, Key: intent.Fields{"order_id": "S-1"}, Expect: intent.Fields{"amount_cents": json.Number("1")}}}}}
}

// questions are all calls of a service, with the permission that each needs.
var questions = map[string]struct {
	act access.Act
	ask func(ctx context.Context, f fixture, as service.Who, id ledger.ID) error
}{
	"Submit": {access.Submit, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		_, err := f.Submit(ctx, as, order("A-9", nil), time.Minute)
		return err
	}},
	"Outcome": {access.Read, func(ctx context.Context, f fixture, as service.Who, id ledger.ID) error {
		_, err := f.Outcome(ctx, as, id, 0)
		return err
	}},
	"Final": {access.Read, func(ctx context.Context, f fixture, as service.Who, id ledger.ID) error {
		_, err := f.Final(ctx, as, id, 0)
		return err
	}},
	"Begun": {access.Submit, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		_, _, err := f.Begun(ctx, as, order("A-1", held))
		return err
	}},
	"View": {access.Trace, func(ctx context.Context, f fixture, as service.Who, id ledger.ID) error {
		_, err := f.View(ctx, as, id)
		return err
	}},
	"Find": {access.Trace, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		found, err := f.Find(ctx, as, ledger.Search{Tenant: "acme"})
		return foreign(err, len(found.Records) > 0, as)
	}},
	"Decide": {access.Decide, func(ctx context.Context, f fixture, as service.Who, id ledger.ID) error {
		_, err := f.Decide(ctx, as, id, engine.Decision{Word: engine.WordApprove, By: "another reviewer", Reason: "it is right"}, time.Minute)
		return err
	}},
	"Yield": {access.Operate, func(ctx context.Context, f fixture, as service.Who, id ledger.ID) error {
		return f.Yield(ctx, as, id, "it never happened")
	}},
	"BeginSaga": {access.Submit, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		_, err := f.BeginSaga(ctx, as, plan())
		return err
	}},
	"Saga": {access.Read, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		_, err := f.Saga(ctx, as, "saga-1")
		return err
	}},
	"Sagas": {access.Trace, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		found, err := f.Sagas(ctx, as, 10)
		return foreign(err, len(found) > 0, as)
	}},
	"CancelSaga": {access.Operate, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		_, err := f.CancelSaga(ctx, as, "saga-1", "not wanted")
		return err
	}},
	"CloseSaga": {access.Operate, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		_, err := f.CloseSaga(ctx, as, "saga-1", "seen to")
		return err
	}},
	"DecideStep": {access.Decide, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		_, err := f.DecideStep(ctx, as, "wf", "step", true, gate.Comment{Comment: "it is right so"})
		return err
	}},
	"StepTrace": {access.Trace, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		made, err := f.gate.Create(ctx, gate.Caller{Tenant: "acme", Name: "bot"}, gate.CreateRequest{WorkflowName: "refund"})
		if err == nil {
			_, err = f.gate.Gate(ctx, gate.Caller{Tenant: "acme", Name: "bot"}, made.WorkflowID, "pay", gate.GateRequest{StepType: "tool_call"})
		}
		if err != nil {
			return err
		}
		found, err := f.StepTrace(ctx, as, made.WorkflowID, "pay")
		return foreign(err, len(found.Decisions) > 0, as)
	}},
	"WorkflowSteps": {access.Trace, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		made, err := f.gate.Create(ctx, gate.Caller{Tenant: "acme", Name: "bot"}, gate.CreateRequest{WorkflowName: "refund"})
		if err == nil {
			_, err = f.gate.Gate(ctx, gate.Caller{Tenant: "acme", Name: "bot"}, made.WorkflowID, "pay", gate.GateRequest{StepType: "tool_call"})
		}
		if err != nil {
			return err
		}
		found, err := f.WorkflowSteps(ctx, as, made.WorkflowID, 10, 0)
		return foreign(err, len(found.Steps) > 0, as)
	}},
	"Inbox": {access.Trace, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		in, err := f.Inbox(ctx, as, service.InboxQuery{})
		return foreign(err, len(in.Writes)+len(in.Counts)+in.Mine > 0, as)
	}},
	"PendingSteps": {access.Trace, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		found, err := f.PendingSteps(ctx, as)
		return foreign(err, len(found) > 0, as)
	}},
	"Assign": {access.Decide, func(ctx context.Context, f fixture, as service.Who, id ledger.ID) error {
		return f.Assign(ctx, as, id, true)
	}},
	"Follow": {access.Read, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		found, _, err := f.Follow(ctx, as, "", 0)
		return foreign(err, len(found) > 0, as)
	}},
	"Latest": {access.Read, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		_, err := f.Latest(ctx, as)
		return err
	}},
	"History": {access.Trace, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		now := time.Now()
		found, err := f.History(ctx, as, ledger.Past{Tenant: "acme", Since: now.Add(-time.Hour), Until: now.Add(time.Hour), Step: time.Minute})
		return foreign(err, len(found) > 0, as)
	}},
	"Replays": {access.Trace, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		now := time.Now()
		found, err := f.Replays(ctx, as, now.Add(-time.Hour), now.Add(time.Hour))
		return foreign(err, len(found) > 0, as)
	}},
	"Destinations": {access.Read, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		_, err := f.Destinations(ctx, as)
		return err
	}},
	"Health": {access.Trace, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		h, err := f.Health(ctx, as, "orders")
		return foreign(err, len(h.Queues)+len(h.Past)+len(h.Refused) > 0, as)
	}},
	"StopEffect": {access.Trace, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		e, err := f.StopEffect(ctx, as, guards.Scope{Destination: "orders"})
		return foreign(err, e.Workflows > 0 || slices.ContainsFunc(e.Writes, func(w service.StopAffected) bool { return w.Count > 0 }), as)
	}},
	"Stops": {access.Read, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		found, err := f.Stops(ctx, as)
		return foreign(err, len(found) > 0, as)
	}},
	"Stop": {access.Operate, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		return f.Stop(ctx, as, guards.Scope{Tenant: "acme", Destination: "orders"}, "the destination is down")
	}},
	"Release": {access.Operate, func(ctx context.Context, f fixture, as service.Who, _ ledger.ID) error {
		return f.Release(ctx, as, guards.Scope{Tenant: "acme", Tool: "charge"}, "it is up again")
	}},
}

// errSeen reports that a caller was shown another tenant's data.
var errSeen = errors.New("shown what is another tenant's")

func foreign(err error, found bool, as service.Who) error {
	if err == nil && found && as.Tenant != "acme" {
		return errSeen
	}
	return err
}

// notQuestions are methods without a caller.
var notQuestions = []string{"Clean", "Refused", "Woken"}

func TestEveryQuestionIsAskedHere(t *testing.T) {
	of := reflect.TypeFor[*service.Service]()
	for i := range of.NumMethod() {
		name := of.Method(i).Name
		if _, ok := questions[name]; !ok && !slices.Contains(notQuestions, name) {
			t.Errorf("the table of rights has no row for %s", name)
		}
	}
}

// world of one tenant: a write that is held, and a stop.
func (f fixture) busy(t *testing.T) ledger.ID {
	t.Helper()
	out, err := f.Submit(t.Context(), who(engine.RoleAgent), order("A-1", held), time.Minute)
	if err != nil || out.Status != ledger.StatusHeld {
		t.Fatalf("%+v, %v", out, err)
	}
	if err := f.Stop(t.Context(), who(engine.RoleOperator), guards.Scope{Tool: "charge"}, "for the test"); err != nil {
		t.Fatal(err)
	}
	return out.ID
}

func TestRights(t *testing.T) {
	for name, q := range questions {
		for _, role := range []engine.Role{engine.RoleAgent, engine.RoleReviewer, engine.RoleOperator, engine.RoleAuditor, "", "root"} {
			t.Run(name+"/"+string(role), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					id := f.busy(t)
					err := q.ask(t.Context(), f, who(role), id)
					denied := errors.Is(err, access.ErrForbidden) || errors.Is(err, access.ErrUnknown)
					if may := who(role).May(q.act) == nil; may == denied {
						t.Errorf("%v; may is %t", err, may)
					}
				})
			})
		}
	}
}

// A caller of another tenant finds nothing of this one, and changes nothing.
func TestAnotherTenantIsNotThere(t *testing.T) {
	for name, q := range questions {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				id := f.busy(t)
				outsider := service.Who{Tenant: "umbrella", Name: "eve", Role: engine.RoleOperator}
				before := f.state(t, id)
				if err := q.ask(t.Context(), f, outsider, id); errors.Is(err, errSeen) {
					t.Error(err)
				}
				if after := f.state(t, id); after.Seq != before.Seq {
					t.Errorf("the write went on: %s", after.Phase())
				}
				stops, err := f.Stops(t.Context(), who(engine.RoleOperator))
				if err != nil || len(stops) != 1 || !stops[0].Active {
					t.Errorf("the stops of acme are %+v, %v", stops, err)
				}
			})
		})
	}
}

func (f fixture) state(t *testing.T, id ledger.ID) ledger.Record {
	t.Helper()
	r, err := f.ledger.Get(t.Context(), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnIntentOfAnotherTenantIsRefused(t *testing.T) {
	f := newFixture(t)
	_, err := f.Submit(t.Context(), who(engine.RoleAgent), order("A-1", func(w *intent.WriteIntent) { w.Tenant = "umbrella" }), time.Minute)
	if !errors.Is(err, service.ErrTenant) || !errors.Is(err, access.ErrForbidden) {
		t.Errorf("an intent of another tenant: %v", err)
	}
	p := plan()
	p.Tenant = "umbrella"
	if _, err = f.BeginSaga(t.Context(), who(engine.RoleAgent), p); !errors.Is(err, service.ErrTenant) {
		t.Errorf("a saga of another tenant: %v", err)
	}
	err = f.Stop(t.Context(), who(engine.RoleOperator), guards.Scope{Tenant: "umbrella"}, "for the test")
	if !errors.Is(err, service.ErrTenant) {
		t.Errorf("a stop of another tenant: %v", err)
	}
	if n := len(f.world.Calls()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

// A decision is in the name of the credentials, whatever name it contains, and the
// requester of the write cannot make it.
func TestDecisionsAreInTheNameOfTheCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		asked := service.Who{Tenant: "acme", Name: "ada", Role: engine.RoleOperator}
		out, err := f.Submit(t.Context(), asked, order("A-1", held), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		choices := func(as service.Who) (allowed []engine.Word) {
			v, err := f.View(t.Context(), as, out.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range v.Choices {
				if c.Allowed {
					allowed = append(allowed, c.Word)
				}
			}
			return allowed
		}
		if mine, others := choices(asked), choices(who(engine.RoleReviewer)); slices.Contains(mine, engine.WordApprove) || !slices.Contains(others, engine.WordApprove) {
			t.Errorf("the caller that asked may %v, others may %v", mine, others)
		}
		d := engine.Decision{Word: engine.WordApprove, By: "bob", Reason: "it is right"}
		if _, err := f.Decide(t.Context(), asked, out.ID, d, time.Minute); !errors.Is(err, engine.ErrForbidden) {
			t.Fatalf("the caller that asked for it approved it: %v", err)
		}
		d.By = "ada"
		got, err := f.Decide(t.Context(), who(engine.RoleReviewer), out.ID, d, time.Minute)
		if err != nil || got.Status != ledger.Verified {
			t.Fatalf("%+v, %v", got, err)
		}
		v, err := f.View(t.Context(), who(engine.RoleAuditor), out.ID)
		if err != nil || v.Intent.Key["order_id"] != "A-1" || v.Profile == nil || len(v.Events) < 5 || len(v.Choices) != 0 {
			t.Fatalf("%+v, %v", v, err)
		}
		i := slices.IndexFunc(v.Events, func(e ledger.Event) bool { return e.Kind == ledger.EvApproved })
		if i < 0 || v.Events[i].By != "reviewer-1" || v.Record.RequestedBy != "ada" {
			t.Errorf("approved by %+v, asked for by %q", v.Events, v.Record.RequestedBy)
		}
	})
}

// A caller that waits for an outcome gets it when a reviewer has decided.
func TestWaitingGoesOnThroughADecision(t *testing.T) {
	for name, c := range map[string]struct {
		word engine.Word
		want ledger.Status
	}{"approved": {engine.WordApprove, ledger.Verified}, "denied": {engine.WordDeny, ledger.Denied}, "no decision": {"", ledger.StatusHeld}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				out, err := f.Submit(t.Context(), who(engine.RoleAgent), order("A-1", held), 0)
				if err != nil {
					t.Fatal(err)
				}
				began, outcomes := time.Now(), make(chan engine.Outcome)
				go func() {
					got, err := f.Outcome(t.Context(), who(engine.RoleAgent), out.ID, time.Minute)
					if err != nil {
						t.Error(err)
					}
					outcomes <- got
				}()
				time.Sleep(20 * time.Second)
				if c.word != "" {
					if _, err := f.Decide(t.Context(), who(engine.RoleReviewer), out.ID, engine.Decision{Word: c.word, Reason: "checked"}, time.Minute); err != nil {
						t.Fatal(err)
					}
				}
				got := <-outcomes
				if took := time.Since(began); got.Status != c.want || c.word != "" && took > 22*time.Second || c.word == "" && took != time.Minute {
					t.Errorf("%s after %s; want %s", got.Status, took, c.want)
				}
			})
		})
	}
}

func TestSubmitWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		out, err := f.Submit(t.Context(), who(engine.RoleAgent), order("A-1", nil), 0)
		if err != nil || out.ID == "" || out.Replayed {
			t.Fatalf("%+v, %v", out, err)
		}
		got, err := f.Outcome(t.Context(), who(engine.RoleAgent), out.ID, time.Minute)
		if err != nil || got.Status != ledger.Verified {
			t.Fatalf("%+v, %v", got, err)
		}
		again, err := f.Submit(t.Context(), who(engine.RoleAgent), order("A-1", nil), 0)
		if err != nil || !again.Replayed || len(f.world.Records("A-1")) != 1 {
			t.Errorf("%+v, %v, %d orders", again, err, len(f.world.Records("A-1")))
		}
	})
}

// The most urgent is first: overdue, final, risky, and then the oldest.
func TestInboxOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		if err := f.world.Set(orders.Fault{Kind: orders.DroppedField, Field: "currency"}); err != nil {
			t.Fatal(err)
		}
		for _, w := range []struct {
			id   string
			risk intent.Risk
			tool string
		}{{"differs-1", "", "charge"}, {"held-1", intent.RiskApprove, "charge"}, {"logged", intent.RiskLog, "charge"}, {"differs-2", "", "charge"}, {"ruled", "", "wire_money"}} {
			if _, err := f.Submit(t.Context(), who(engine.RoleAgent), order(w.id, func(i *intent.WriteIntent) { i.Risk, i.Tool = w.risk, w.tool }), time.Hour); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		in, err := f.Inbox(t.Context(), who(engine.RoleReviewer), service.InboxQuery{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range in.Writes {
			got = append(got, strings.TrimPrefix(w.Record.Step, "charge-"))
		}
		if want := []string{"held-1", "ruled", "logged", "differs-1", "differs-2"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

func TestDestinationsShowStopsOfTheOwnTenantAlone(t *testing.T) {
	f := newFixture(t)
	for tenant, scope := range map[string]guards.Scope{"acme": {Destination: "orders"}, "umbrella": {Tool: "x"}} {
		if err := f.Stop(t.Context(), service.Who{Tenant: tenant, Name: "op", Role: engine.RoleOperator}, scope, "for the test"); err != nil {
			t.Fatal(err)
		}
	}
	if err := guards.Stop(t.Context(), f.ledger, guards.Scope{}, "night shift", "everything is stopped"); err != nil {
		t.Fatal(err)
	}
	all, err := f.Destinations(t.Context(), who(engine.RoleAgent))
	if err != nil || len(all) != 1 || all[0].Type != "simulated" || len(all[0].Profiles) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	var scopes []string
	for _, s := range all[0].Stops {
		scopes = append(scopes, s.String())
	}
	slices.Sort(scopes)
	if want := []string{"all sends", `tenant "acme", destination "orders"`}; !slices.Equal(scopes, want) {
		t.Errorf("%v, want %v", scopes, want)
	}
	err = f.Stop(t.Context(), who(engine.RoleOperator), guards.Scope{Destination: "ordesr"}, "a slip of the hand")
	if !errors.Is(err, connectors.ErrUnknownDestination) {
		t.Errorf("a stop of what is not there: %v", err)
	}
}

func TestWokenRingsByItselfAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		ctx, cancel := context.WithCancel(t.Context())
		rings := f.Woken(ctx)
		<-rings
		<-rings
		cancel()
		synctest.Wait()
	})
}

// Cursors of the ledger are numbers of all tenants' changes and writes. A caller gets
// them sealed: it learns nothing from one or from two, another tenant cannot use it, and
// the error of a restored ledger has none of its numbers.
func TestCursorsCountNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, agent := newFixture(t), who(engine.RoleAgent)
		eve, auditor := service.Who{Tenant: "umbrella", Name: "eve", Role: engine.RoleAgent}, who(engine.RoleAuditor)
		for _, id := range []string{"A-1", "A-2", "A-3"} {
			if _, err := f.Submit(t.Context(), agent, order(id, nil), time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		changes, next, err := f.Follow(t.Context(), agent, "", 2)
		if err != nil || len(changes) != 2 {
			t.Fatalf("%d changes, %v", len(changes), err)
		}
		rest, _, err := f.Follow(t.Context(), agent, changes[0].Cursor, 1)
		if err != nil || rest[0].ID != changes[1].ID {
			t.Errorf("behind the first change is %+v, %v; want the second", rest, err)
		}
		page, err := f.Find(t.Context(), auditor, ledger.Search{Limit: 2})
		if err != nil || len(page.Records) != 2 {
			t.Fatalf("%+v, %v", page, err)
		}
		if last, err := f.Find(t.Context(), auditor, ledger.Search{Limit: 2, After: page.Next}); err != nil || len(last.Records) != 1 || last.Next != "" {
			t.Errorf("the second page is %+v, %v; want the oldest write, and no page behind it", last, err)
		}
		first, err := f.Latest(t.Context(), eve)
		if err != nil {
			t.Fatal(err)
		}
		second, err := f.Latest(t.Context(), eve)
		if err != nil || first == second || len(first) != len(second) {
			t.Errorf("%q and %q, %v; want two that cannot be compared", first, second, err)
		}
		own, err := f.ledger.Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lengths := map[int]bool{len(page.Next): true}
		for n := range 10 { // the number gets a digit more
			if _, err := f.Submit(t.Context(), agent, order(fmt.Sprint("B-", n), nil), time.Minute); err != nil {
				t.Fatal(err)
			}
			latest, err := f.Latest(t.Context(), eve)
			if err != nil {
				t.Fatal(err)
			}
			lengths[len(latest)] = true
		}
		if len(lengths) != 1 {
			t.Errorf("cursors have %d lengths, want one: it counts digits", len(lengths))
		}
		for reason, c := range map[string]struct {
			cursor string
			want   error
		}{
			"another tenant's":                  {next, ledger.ErrCursor},
			"the ledger's own number of writes": {ledger.SearchCursor(1), ledger.ErrCursor},
			"of an earlier version":             {own, ledger.ErrTooFar},
			"no cursor":                         {"AAAA", ledger.ErrCursor},
		} {
			if _, _, err := f.Follow(t.Context(), eve, c.cursor, 1); !errors.Is(err, c.want) || strings.ContainsAny(err.Error(), "0123456789") {
				t.Errorf("%s: %v; want %v without numbers", reason, err, c.want)
			}
		}
		back := f
		back.Service = service.New(service.Parts{Ledger: putBack{f.ledger}})
		if _, _, err := back.Follow(t.Context(), agent, next, 1); !errors.Is(err, ledger.ErrTooFar) || strings.ContainsAny(err.Error(), "0123456789") {
			t.Errorf("a ledger that was put back: %v; want %v without numbers", err, ledger.ErrTooFar)
		}
	})
}

// putBack is a ledger that no longer has any change.
type putBack struct{ *ledger.Memory }

func (putBack) Follow(context.Context, ledger.Following) ([]ledger.Change, string, error) {
	return nil, "", ledger.Place{N: 7, Mark: 7}.Reaches(1, 5, nil)
}

// kept has one saga.
type kept struct {
	service.Sagas
	saga saga.Saga
}

func (k kept) Get(context.Context, string, string) (saga.Saga, error) { return k.saga, nil }

// A saga that a reviewer must see to, or one of whose writes waits for one, has the address
// of its page.
func TestASagaThatWaitsHasItsPage(t *testing.T) {
	for name, c := range map[string]struct {
		saga saga.Saga
		want string
	}{
		"in review":      {saga.Saga{State: saga.Review}, "https://readback.example/sagas/trip%201"},
		"a held step":    {saga.Saga{State: saga.Running, Steps: []saga.StepState{{Status: ledger.StatusHeld}}}, "https://readback.example/sagas/trip%201"},
		"an undo":        {saga.Saga{State: saga.Running, Steps: []saga.StepState{{UndoStatus: ledger.StatusReview}}}, "https://readback.example/sagas/trip%201"},
		"under way":      {saga.Saga{State: saga.Running, Steps: []saga.StepState{{Status: ledger.InProgress}, {}}}, ""},
		"done, verified": {saga.Saga{State: saga.Done, Steps: []saga.StepState{{Status: ledger.Verified}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.saga.ID = "trip 1"
			f := service.New(service.Parts{Sagas: kept{saga: c.saga}, ReviewUI: "https://readback.example"})
			if s, err := f.Saga(t.Context(), who(engine.RoleAgent), c.saga.ID); err != nil || s.ReviewURL != c.want {
				t.Errorf("%q, %v; want %q", s.ReviewURL, err, c.want)
			}
		})
	}
}
