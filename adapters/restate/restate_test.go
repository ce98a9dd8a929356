package restate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"

	"github.com/readback-go/readback/adapters/restate"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/adaptertest"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

func TestMain(m *testing.M) {
	defer func() { _ = os.RemoveAll(installed) }()
	adaptertest.Main(m, map[string]func(context.Context) error{"worker": worker})
}

// Order is the input of a handler.
type Order = adaptertest.Order

func charge(tool string, o Order) intent.WriteIntent {
	w, err := adaptertest.Charge(tool, o)
	if err != nil {
		panic(err)
	}
	return w
}

// serve serves the handlers of a test:
//   - the service payments, with charge, with named, whose intent has a Workflow, and with unstable,
//     whose name changes with each replay;
//   - the object account, with charge, with named, and with held, which needs approval;
//   - the workflow checkout, which makes one write of each kind.
func serve(ctx context.Context, at string, ws restate.Writes, prefix string, replays *atomic.Int32) error {
	// Handlers that wait are suspended at once, and replayed later.
	atOnce := sdk.WithInactivityTimeout(100 * time.Millisecond)
	// The server pauses an invocation after 70 attempts, by default: a worker may take longer to start.
	quick := sdk.WithInvocationRetryPolicy(sdk.WithInitialRetryInterval(50*time.Millisecond), sdk.WithMaxRetryInterval(500*time.Millisecond), sdk.WithMaxRetryAttempts(10_000))
	of := func(name string) *restate.Writes {
		w := ws
		w.Service = prefix + name
		return &w
	}
	do := func(service, tool string, change func(*intent.WriteIntent)) func(ctx sdk.Context, o Order) (string, error) {
		writes := of(service)
		return func(ctx sdk.Context, o Order) (string, error) {
			replays.Add(1)
			w := charge(tool, o)
			if change != nil {
				change(&w)
			}
			out, err := writes.Do(ctx, "charge", w)
			return string(out.Status), err
		}
	}
	named := func(w *intent.WriteIntent) { w.Workflow = "run-1" }
	both := func(ctx sdk.Context, o Order) (string, error) {
		for _, step := range []string{"charge", "held"} {
			if out, err := of("checkout").Do(ctx, step, charge(step, Order{ID: o.ID + "-" + step})); err != nil || out.Status != ledger.Verified {
				return string(out.Status), err
			}
		}
		return "both", nil
	}
	object := func(do func(sdk.Context, Order) (string, error)) func(sdk.ObjectContext, Order) (string, error) {
		return func(ctx sdk.ObjectContext, o Order) (string, error) { return do(ctx, o) }
	}
	return server.NewRestate().WithLogger(slog.DiscardHandler, true).
		Bind(sdk.NewService(prefix+"payments", atOnce, quick).
			Handler("charge", sdk.NewServiceHandler(do("payments", "charge", nil))).
			Handler("unstable", sdk.NewServiceHandler(do("payments", "held", func(w *intent.WriteIntent) { w.Workflow = fmt.Sprint("run-", replays.Load()) }))).
			Handler("named", sdk.NewServiceHandler(do("payments", "charge", named)))).
		Bind(sdk.NewObject(prefix+"account", atOnce, quick).
			Handler("charge", sdk.NewObjectHandler(object(do("account", "charge", nil)))).
			Handler("named", sdk.NewObjectHandler(object(do("account", "charge", named)))).
			Handler("held", sdk.NewObjectHandler(object(do("account", "held", nil))))).
		Bind(sdk.NewWorkflow(prefix+"checkout", atOnce, quick).
			Handler("run", sdk.NewWorkflowHandler(func(ctx sdk.WorkflowContext, o Order) (string, error) { return both(ctx, o) }))).
		Start(ctx, at)
}

// bench is a server and an engine before a destination.
type bench struct {
	*restateServer
	*adaptertest.Bench
	replays atomic.Int32
	forward atomic.Int64 // how far the ledger's clock is set forward
}

func newBench(t *testing.T, env ...string) *bench {
	t.Helper()
	b := &bench{restateServer: newServer(t, env...), Bench: adaptertest.NewBench(t)}
	b.Ledger.SetClock(func() time.Time { return time.Now().Add(time.Duration(b.forward.Load())) })
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { b.kill(); cancel(); wg.Wait() }) // the server holds connections to the service
	at := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	for _, part := range []func() error{
		func() error {
			return serve(ctx, at, restate.Writes{Engine: b.Engine, Ledger: b.Ledger}, "", &b.replays)
		},
		func() error { return b.Engine.Work(ctx, nil) },
		func() error { return restate.Wake(ctx, b.Ledger, "http://"+b.ingress, client) },
	} {
		wg.Go(func() { _ = part() })
	}
	b.register(at)
	return b
}

// ask starts an invocation, and returns its result later.
func (b *bench) ask(handler, body string) <-chan string {
	done := make(chan string, 1)
	go func() {
		got, err := b.invoke(handler, body, "")
		done <- fmt.Sprint(got, err)
	}()
	return done
}

// held waits until a write waits for a reviewer, and its handler is suspended with a waiter.
func (b *bench) held() ledger.ID {
	b.t.Helper()
	var id ledger.ID
	b.until("a handler waits for a reviewer", func() error {
		notes, _, err := b.Ledger.Notes(context.Background(), "restate/")
		if err != nil || len(notes) != 1 {
			return fmt.Errorf("%d waiters, %w", len(notes), err)
		}
		id = ledger.ID(strings.Split(notes[0].Name, "/")[1])
		return nil
	})
	return id
}

// passesKeys are settings with which the server passes the idempotency key of a request on to its handler.
var passesKeys = []string{"RESTATE_EXPERIMENTAL_ENABLE_PROTOCOL_V7=true", "RESTATE_EXPERIMENTAL_ENABLE_VQUEUES=true"}

// A lost response is read back, and every repeat has the first outcome: a second request, one whose
// idempotency key Restate has forgotten, and an invocation that is started anew.
func TestRepeats(t *testing.T) {
	t.Parallel()
	b := newBench(t, passesKeys...)
	if err := b.World.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ handler, order, key string }{
		{"payments/charge", "A-1", "key-1"}, {"account/A-2/charge", "A-2", ""}, {"account/A-2/charge", "A-2", ""},
	} {
		if got, err := b.invoke(c.handler, fmt.Sprintf(`{"order_id": %q, "amount_cents": 1999}`, c.order), c.key); err != nil || got != `"verified"` {
			t.Fatalf("%s: %s, %v", c.handler, got, err)
		}
	}
	b.Once("A-1", "A-2")
	for _, r := range b.All() {
		if r.Sends != 1 || r.Step != "charge" || r.Workflow != "restate:payments/key-1" && r.Workflow != "restate:account/A-2" {
			t.Errorf("%d sends of workflow %q, step %q", r.Sends, r.Workflow, r.Step)
		}
	}
	all, err := b.invocations()
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, i := range all {
		answer, err := call(t.Context(), http.MethodPatch, "http://"+b.admin+"/invocations/"+i.ID+"/restart-as-new", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		var started struct {
			ID string `json:"new_invocation_id"`
		}
		if err := json.Unmarshal([]byte(answer), &started); err != nil {
			t.Fatal(err)
		}
		got, err := call(t.Context(), http.MethodGet, "http://"+b.ingress+"/restate/invocation/"+started.ID+"/attach", "", nil)
		// The new invocation of a service has no idempotency key any more: it has no name.
		if refused := err != nil && strings.Contains(err.Error(), "idempotency key"); refused != (i.Target == "payments/charge") || !refused && got != `"verified"` {
			t.Errorf("%s anew: %s, %v", i.Target, got, err)
		}
	}
	b.Once("A-1", "A-2")
	if n := len(b.All()); n != 2 {
		t.Errorf("%d writes; want 2", n)
	}
}

// A reviewer decides days later, by the ledger's clock, while the handler is suspended before a timer
// of an hour: the decision wakes it.
func TestDecisionDaysLater(t *testing.T) {
	for word, want := range map[engine.Word]string{engine.WordApprove: `"verified"<nil>`, engine.WordDeny: "denied"} {
		t.Run(string(word), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.forward.Store(int64(-5 * 24 * time.Hour)) // so that the age of the write makes the timer an hour
			done := b.ask("account/A-1/held", `{"order_id": "A-1", "amount_cents": 1999}`)
			id := b.held()
			b.until("the handler is suspended", func() error {
				all, err := b.invocations()
				if err == nil && (len(all) != 1 || all[0].Status != "suspended") {
					err = fmt.Errorf("%+v", all)
				}
				return err
			})
			if n := len(b.World.Effects()); n != 0 {
				t.Errorf("%d effects before the decision; want 0", n)
			}
			b.forward.Store(0)
			b.Decide(id, word)
			if got := <-done; !strings.Contains(got, want) {
				t.Errorf("got %s; want %s", got, want)
			}
			if n := b.replays.Load(); n < 2 {
				t.Errorf("the handler ran %d times; it was not suspended", n)
			}
			b.until("no waiter is left", func() error {
				notes, _, err := b.Ledger.Notes(t.Context(), "restate/")
				if err == nil && len(notes) > 0 {
					err = fmt.Errorf("%+v", notes)
				}
				return err
			})
			if word == engine.WordApprove {
				b.Once("A-1")
			} else if n := len(b.World.Effects()); n != 0 {
				t.Errorf("%d effects; want 0", n)
			}
		})
	}
}

// What repeating cannot change fails the handler at once, in plain words.
func TestFailures(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.World.Set(orders.Fault{Kind: orders.Refused, How: "422", Times: 1}); err != nil {
		t.Fatal(err)
	}
	const order = `{"order_id": "A-1", "amount_cents": 1999}`
	for _, c := range []struct{ name, handler, body, want string }{
		{"refused by the destination", "account/A-1/charge", order, "409"},
		{"the same again", "account/A-1/charge", order, "409"},
		{"no name", "payments/charge", order, "idempotency key"},
		{"no business key", "account/A-2/charge", `{"amount_cents": 1}`, "order_id"},
		{"another request under one name", "account/A-1/charge", `{"order_id": "A-2", "amount_cents": 5}`, "digest"},
	} {
		got, err := b.invoke(c.handler, c.body, "")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %s, %v; want %s", c.name, got, err, c.want)
		}
	}
	if n := len(b.World.Effects()); n != 0 {
		t.Errorf("%d effects; want 0", n)
	}
}

// The Workflow of an intent, and the key of an object or of a request are names of different writes, also
// where one has the text of the other.
func TestNames(t *testing.T) {
	t.Parallel()
	b := newBench(t, passesKeys...)
	for _, c := range []struct{ handler, order, key string }{
		{"account/run-1/charge", "A-1", ""}, {"account/other/named", "A-2", ""}, {"payments/charge", "A-3", "run-1"}, {"payments/named", "A-4", ""},
	} {
		if got, err := b.invoke(c.handler, `{"order_id": "`+c.order+`"}`, c.key); err != nil || !strings.Contains(got, "verified") {
			t.Errorf("%s: %s, %v", c.handler, got, err)
		}
	}
	b.Once("A-1", "A-2", "A-3", "A-4")
}

// A name that changes between two replays is refused, and nothing is recorded under the second.
func TestNameThatChanges(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	got, err := b.invoke("payments/unstable", `{"order_id": "A-1", "amount_cents": 1999}`, "")
	if err == nil || !strings.Contains(err.Error(), engine.ErrIdentityChanged.Error()) {
		t.Errorf("got %s, %v", got, err)
	}
	if n := len(b.All()); n != 1 {
		t.Errorf("%d writes; want 1", n)
	}
}

// A cancelled handler says that the write may have been sent.
func TestCancelled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	done := b.ask("account/A-1/held", `{"order_id": "A-1", "amount_cents": 1999}`)
	id := b.held()
	all, err := b.invocations()
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if _, err := call(t.Context(), http.MethodPatch, "http://"+b.admin+"/invocations/"+all[0].ID+"/cancel", "", nil); err != nil {
		t.Fatal(err)
	}
	if got := <-done; !strings.Contains(got, "may have been sent") || !strings.Contains(got, string(id)) {
		t.Errorf("got %s", got)
	}
	if all := b.All(); len(all) != 1 || all[0].State != ledger.Held {
		t.Errorf("the writes are %+v", all)
	}
}
