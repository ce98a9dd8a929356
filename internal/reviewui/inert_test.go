package reviewui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// evil is a hostile text of a model or a destination.
const evil = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}javascript:alert(3)\u202e\u200b\u2066\x00\x1b[31m</style></textarea></svg>`${1}`"

// fake is a service that returns what it is given.
type fake struct {
	view         service.View
	inbox        service.Inbox
	trace        gate.StepTrace
	steps        gate.StepList
	destinations []service.Destination
	health       service.Health
	effect       service.StopEffect
	stops        []guards.Stopped
	sagas        []saga.Saga
	found        service.Found
	spans        []ledger.Span
	err          error
	message      engine.Decision
	decide       func() // while a decision is carried out

	changes chan []ledger.Change
	woken   chan struct{}
	latest  string
	follow  error
}

func (f *fake) View(context.Context, access.Identity, ledger.ID) (service.View, error) {
	return f.view, f.err
}
func (f *fake) Find(context.Context, access.Identity, ledger.Search) (service.Found, error) {
	return f.found, f.err
}
func (f *fake) Decide(_ context.Context, _ access.Identity, _ ledger.ID, d engine.Decision, _ time.Duration) (engine.Outcome, error) {
	f.message = d
	if f.decide != nil {
		f.decide()
	}
	return engine.Outcome{}, f.err
}
func (f *fake) Assign(context.Context, access.Identity, ledger.ID, bool) error  { return f.err }
func (f *fake) Yield(context.Context, access.Identity, ledger.ID, string) error { return f.err }
func (f *fake) Inbox(context.Context, access.Identity, service.InboxQuery) (service.Inbox, error) {
	return f.inbox, f.err
}
func (f *fake) PendingSteps(context.Context, access.Identity) ([]gate.PendingApproval, error) {
	return f.inbox.Steps, f.err
}
func (f *fake) StepTrace(context.Context, access.Identity, string, string) (gate.StepTrace, error) {
	return f.trace, f.err
}
func (f *fake) WorkflowSteps(context.Context, access.Identity, string, int, int) (gate.StepList, error) {
	return f.steps, f.err
}
func (f *fake) DecideStep(context.Context, access.Identity, string, string, bool, gate.Comment) (gate.ApprovalResult, error) {
	return gate.ApprovalResult{}, f.err
}
func (f *fake) Destinations(context.Context, access.Identity) ([]service.Destination, error) {
	return f.destinations, f.err
}
func (f *fake) Health(context.Context, access.Identity, string) (service.Health, error) {
	return f.health, f.err
}
func (f *fake) StopEffect(context.Context, access.Identity, guards.Scope) (service.StopEffect, error) {
	return f.effect, f.err
}
func (f *fake) Stops(context.Context, access.Identity) ([]guards.Stopped, error) {
	return f.stops, f.err
}
func (f *fake) Stop(context.Context, access.Identity, guards.Scope, string) error    { return f.err }
func (f *fake) Release(context.Context, access.Identity, guards.Scope, string) error { return f.err }
func (f *fake) Saga(context.Context, access.Identity, string) (saga.Saga, error) {
	if len(f.sagas) == 0 {
		return saga.Saga{}, saga.ErrNotFound
	}
	return f.sagas[0], f.err
}
func (f *fake) Sagas(context.Context, access.Identity, int, ...saga.State) ([]saga.Saga, error) {
	return f.sagas, f.err
}
func (f *fake) CancelSaga(context.Context, access.Identity, string, string) (saga.Saga, error) {
	return saga.Saga{}, f.err
}
func (f *fake) CloseSaga(context.Context, access.Identity, string, string) (saga.Saga, error) {
	return saga.Saga{}, f.err
}
func (f *fake) Follow(_ context.Context, _ access.Identity, after string, _ int) ([]ledger.Change, string, error) {
	if f.follow != nil {
		err := f.follow
		f.follow = nil
		return nil, "", err
	}
	select {
	case all := <-f.changes:
		return all, after + "+", nil
	default:
		return nil, after, nil
	}
}
func (f *fake) Latest(context.Context, access.Identity) (string, error) { return f.latest, f.err }
func (f *fake) Woken(context.Context) <-chan struct{}                   { return f.woken }
func (f *fake) Replays(context.Context, access.Identity, time.Time, time.Time) ([]service.Replays, error) {
	return nil, nil
}

func (f *fake) History(context.Context, access.Identity, ledger.Past) ([]ledger.Span, error) {
	return f.spans, f.err
}

// newApp is a review UI over a fake.
func (f *fake) newApp(o *Options) *app {
	d := &app{service: f}
	if o == nil {
		o = &Options{Who: byHeader{}, FormToken: formToken}
	}
	return d.open(o)
}

// spoil puts a hostile text into every string, at any depth.
func spoil(v reflect.Value, depth int) {
	if depth > 12 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(evil)
	case reflect.Int, reflect.Int64, reflect.Float64:
		if v.IsZero() {
			v.Set(reflect.ValueOf(3).Convert(v.Type()))
		}
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		spoil(v.Elem(), depth+1)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			text, err := json.Marshal(map[string]any{evil: evil, "list": []any{evil}})
			if err != nil {
				panic(err)
			}
			v.SetBytes(text)
			return
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(evil))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			spoil(v.Index(i), depth+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		spoil(key, depth+1)
		if value.Kind() == reflect.Interface {
			value.Set(reflect.ValueOf(evil))
		} else {
			spoil(value, depth+1)
		}
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 31, 18, 0, 0, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			spoil(v.Field(i), depth+1)
		}
	}
}

func spoiled[T any]() T {
	var v T
	spoil(reflect.ValueOf(&v).Elem(), 0)
	return v
}

// spoiledFake returns hostile texts everywhere, in each state in which a page looks
// different.
func spoiledFake(state ledger.State) *fake {
	f := &fake{view: spoiled[service.View](), inbox: spoiled[service.Inbox](), trace: spoiled[gate.StepTrace](), steps: spoiled[gate.StepList](), destinations: spoiled[[]service.Destination](), stops: spoiled[[]guards.Stopped](),
		sagas: spoiled[[]saga.Saga](), found: spoiled[service.Found](), spans: spoiled[[]ledger.Span]()}
	r := &f.view.Record
	r.State, r.Tombstone = state, false
	f.inbox.Writes[0].Record.State, f.inbox.Writes[1].Record.State = ledger.Held, ledger.Review
	obs := spoiled[connectors.Observation]()
	obs.Records[1].Stamp = f.view.Intent.Stamp()
	r.Evidence, r.Before = must(json.Marshal(obs)), must(json.Marshal(obs))
	r.Mismatches = must(json.Marshal([]map[string]any{{"path": "/" + evil, "problem": evil, "want": evil, "got": evil}, {"path": "/count", "problem": "count", "want": evil, "got": evil},
		{"path": "", "problem": "not ours", "got": evil}, {"path": "/" + evil + "/x", "problem": "changed", "want": nil}}))
	r.Intent = must(json.Marshal(f.view.Intent))
	f.view.Choices = append(f.view.Choices, engine.Choice{Word: engine.WordRetry, Allowed: true, Effect: evil, Danger: evil, Force: true}, engine.Choice{Word: engine.WordDeny, Why: evil})
	for i, kind := range []ledger.EventKind{ledger.EvReserved, ledger.EvFreed, ledger.EvHeld, ledger.EvAgreed, ledger.EvOverdue, ledger.EvApproved, ledger.EvDelegated, ledger.EvYielded, ledger.EvRead,
		ledger.EvAnnounced, ledger.EvSent, ledger.EvRecovered, ledger.EvRestored, ledger.EvDeferred, ledger.EvEscalated, ledger.EvDirected, ledger.EvCompensating, ledger.EvSettled, ledger.EvRechecked, ledger.EvLate} {
		e := spoiled[ledger.Event]()
		e.Kind, e.Seq = kind, int64(i)
		f.view.Events = append(f.view.Events, e)
	}
	f.sagas[0].State, f.sagas[0].Back, f.sagas[0].Stopped = saga.Review, nil, nil
	f.stops[0].Active, f.stops[0].Damaged, f.stops[0].Tenant = true, false, "acme"
	f.destinations[0].Lags = []lag.PathLag{{Key: lag.Key{Destination: evil, Kind: evil, Path: evil}, Count: 7, P50: time.Second, P90: time.Minute, P99: time.Hour}}
	f.health = spoiled[service.Health]()
	f.health.Destination = f.destinations[0]
	f.effect = spoiled[service.StopEffect]()
	return f
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

// checkInert reports where a text became more than text.
func checkInert(t *testing.T, a answer) {
	t.Helper()
	for _, n := range a.all(func(*html.Node) bool { return true }) {
		for _, at := range n.Attr {
			value := strings.ToLower(strings.TrimSpace(at.Val))
			if strings.HasPrefix(value, "javascript:") || strings.HasPrefix(value, "data:") {
				t.Errorf("<%s %s=%q>", n.Data, at.Key, at.Val)
			}
		}
		if n.Data == "img" {
			if src, _ := attr(n, "src"); !strings.HasPrefix(src, "/static/") {
				t.Errorf("a picture of %q", src)
			}
		}
	}
	for _, n := range a.all(tag("textarea")) { // it gives back what was typed, as it was typed
		n.FirstChild = nil
	}
	for _, hidden := range []string{"\u202e", "\u200b", "\u2066", "\x00", "\x1b"} {
		if i := strings.Index(a.text(), hidden); i >= 0 {
			t.Errorf("something that cannot be seen, %+q, behind %q", hidden, a.text()[max(0, i-60):i])
		}
	}
	if !strings.Contains(a.Body, "alert(1)") {
		t.Error("none of the text is shown at all: this test reads an empty page")
	}
}

func TestForeignTextIsText(t *testing.T) {
	form := "choice=x&reason=" + "%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E"
	for _, state := range []ledger.State{ledger.Held, ledger.Review, ledger.Checking, ledger.Settled} {
		f := spoiledFake(state)
		h := f.newApp(nil)
		step := stepPath(f.inbox.Steps[0].WorkflowID, f.inbox.Steps[0].StepID)
		for _, path := range []string{"/inbox", "/writes/x", "/destinations", "/destinations/x/health", "/search", "/search?q=" + strings.ReplaceAll(form, "&", "%26"), "/sagas", "/sagas/x", step, stepPath("wf", "blocked")} {
			for _, who := range []person{operator, reviewer, auditor} {
				t.Run(fmt.Sprint(state, who.role, path), func(t *testing.T) {
					a := who.get(t, h, path)
					if a.Status != http.StatusOK {
						t.Fatalf("status %d: %s", a.Status, a.text())
					}
					checkPage(t, a)
					checkInert(t, a)
				})
			}
		}
		a := operator.get(t, h, "/destinations/stop?"+url.Values{"destination": {evil}, "tool": {evil}}.Encode())
		checkPage(t, a)
		checkInert(t, a)
		for _, path := range []string{"/writes/x/decision", "/inbox/decisions", "/writes/x/assignment", "/writes/x/yield", "/sagas/x/cancel", "/destinations/stop", step + "/decision"} {
			t.Run(fmt.Sprint(state, "POST", path), func(t *testing.T) {
				a := operator.send(t, h, http.MethodPost, path, map[string][]string{"choice": {evil}, "reason": {evil}, "tool": {evil}, "destination": {evil}, "seq": {evil}, "digest": {evil}, "approval": {evil}, "from": {evil}, pickPrefix + evil: {"1 " + evil}})
				if a.Status == http.StatusSeeOther {
					if to := a.Header.Get("Location"); !strings.HasPrefix(to, "/") || strings.ContainsAny(to, "<>\"\r\n") {
						t.Errorf("sent to %q", to)
					}
					return
				}
				checkPage(t, a)
				checkInert(t, a)
			})
		}
	}
}

func TestErrorsOfOthersAreText(t *testing.T) {
	for name, err := range map[string]error{
		"forbidden": fmt.Errorf("%w: %s", access.ErrForbidden, evil), "refused": &gate.Error{Code: gate.NotPending, Message: evil},
		"unsupported": fmt.Errorf("%w: %s", service.ErrUnsupported, evil),
	} {
		t.Run(name, func(t *testing.T) {
			a := operator.get(t, (&fake{err: err}).newApp(nil), "/inbox")
			checkPage(t, a)
			checkInert(t, a)
		})
	}
	a := operator.get(t, (&fake{err: fmt.Errorf("dial postgres://readback:hunter2@db: %s", evil)}).newApp(nil), "/inbox")
	if a.Status != http.StatusInternalServerError || strings.Contains(a.Body, "hunter2") {
		t.Errorf("status %d, and the page says %q", a.Status, a.text())
	}
}

// large is a write with more evidence than a page can hold.
func large(t *testing.T) service.View {
	t.Helper()
	big := strings.Repeat("lorem <ipsum> & \"dolor\"\n", 1<<20/8/24)
	w := order("L-1", func(w *intent.WriteIntent) { w.Tenant, w.Expect = "acme", intent.Fields{"note": big} })
	v := service.View{Intent: w, Profile: &connectors.Profile{}}
	body, err := json.Marshal(map[string]any{"order_id": "L-1", "note": big + "!"})
	if err != nil {
		t.Fatal(err)
	}
	v.Record = judged(t, w, []string{string(body)}, []string{string(body), string(body), string(body), string(body), string(body), string(body), string(body)})
	v.Record.Intent = must(json.Marshal(w))
	v.Record.ID, v.Record.Tenant = "wr_large", "acme"
	for i := range 2000 {
		e := ledger.Event{Seq: int64(i), Kind: ledger.EvRead, Reason: big[:2000]}
		if i%100 == 0 { // each costs 10 ms to decode
			e.Evidence = v.Record.Evidence
		}
		v.Events = append(v.Events, e)
	}
	return v
}

func TestPagesStaySmall(t *testing.T) {
	f := &fake{view: large(t)}
	a := operator.get(t, f.newApp(nil), "/writes/wr_large")
	const most = 1 << 20
	if a.Status != http.StatusOK || len(a.Body) > most {
		t.Errorf("status %d, %d bytes; want at most %d", a.Status, len(a.Body), most)
	}
	for _, want := range []string{"too many for this page", "2 more records", "1700 events"} {
		if !strings.Contains(a.text(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	checkPage(t, a)
}
