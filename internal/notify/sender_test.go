package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/webhook"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/notify"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/internal/wire"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/saga"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAA"

var errDied = errors.New("the process has died")

// bench is an engine before a destination of orders and a receiver of messages.
type bench struct {
	t       *testing.T
	ledger  *ledger.Memory
	engine  *engine.Engine
	gate    *gate.Gate
	service *service.Service

	stuck atomic.Bool  // there is a saga in review
	round atomic.Int64 // if not 0: as many sagas as are listed at once are in review, others in each round

	mu  sync.Mutex
	got []string // the texts that were received, of distinct messages
	ids map[string]bool
}

// reviewed are the sagas of the tenant acme, of which one is in review or none.
type reviewed struct {
	service.Sagas
	saga  saga.Saga
	stuck *atomic.Bool
	round *atomic.Int64
}

func (r reviewed) List(_ context.Context, tenant string, limit int, _ ...saga.State) ([]saga.Saga, error) {
	if n := r.round.Load(); n > 0 && tenant == r.saga.Tenant {
		all := make([]saga.Saga, limit)
		for i := range all {
			all[i] = r.saga
			all[i].ID = fmt.Sprintf("saga-%d-%d", n, i)
		}
		return all, nil
	}
	if tenant == r.saga.Tenant && r.stuck.Load() {
		return []saga.Saga{r.saga}, nil
	}
	return nil, nil
}

func newBench(t *testing.T, risks ...policies.RiskRule) *bench {
	t.Helper()
	world, err := orders.New(orders.Plain.Options())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, ledger: ledger.NewMemory(), ids: map[string]bool{}}
	c, err := webhook.New(webhook.Options{URL: "https://chat.example/", Secret: secret, Transport: wire.Transport(b, nil)})
	if err != nil {
		t.Fatal(err)
	}
	var reg connectors.Registry
	if err := errors.Join(reg.Register("orders", world.Destination()), reg.Register("webhook:chat", c.Destination())); err != nil {
		t.Fatal(err)
	}
	b.engine = engine.New(b.ledger, &reg, &engine.Options{Risks: risks})
	t.Cleanup(b.engine.Close)
	b.gate = gate.New(b.ledger, &gate.Options{Reader: b.engine, Risks: []policies.RiskRule{{Tool: "wire_*", Class: intent.RiskApprove}}})
	inReview := reviewed{saga: saga.Saga{Tenant: "acme", ID: "onboard-7", State: saga.Review, Since: time.Unix(0, 0)}, stuck: &b.stuck, round: &b.round}
	b.service = service.New(service.Parts{Writes: b.engine, Ledger: b.ledger, Registry: &reg, Steps: b.gate, Sagas: inReview})
	return b
}

// ServeHTTP receives a message.
func (b *bench) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	var m struct {
		Type string `json:"type"`
		Data struct{ Tenant, Subject, Text string }
	}
	if err = errors.Join(err, json.Unmarshal(text, &m)); err != nil || m.Type != "readback.notification" {
		b.t.Errorf("%s: %v", text, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if id := r.Header.Get("webhook-id"); !b.ids[id] {
		b.ids[id] = true
		b.got = append(b.got, m.Data.Text)
	}
}

// messages are the texts that were received since the last call.
func (b *bench) messages() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.got
	b.got = nil
	return all
}

// chat is a notification of the tenant acme.
func chat(change func(*config.Notification)) config.Notification {
	n := config.Notification{Name: "chat", Destination: "webhook:chat", Kind: webhook.Kind, Tenants: []string{"acme"}, Window: 5 * time.Minute, Lines: 3}
	if change != nil {
		change(&n)
	}
	return n
}

func (b *bench) sender(l ledger.Ledger, e notify.Engine, all ...config.Notification) *notify.Sender {
	return notify.New(notify.Options{Ledger: l, Engine: e, Service: b.service, Notifications: all, ReviewUI: "https://readback.example"})
}

// live runs workers and senders until it is stopped.
func (b *bench) live(senders ...*notify.Sender) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.engine.Work(ctx, &engine.WorkOptions{Idle: 10 * time.Second}) })
	for _, s := range senders {
		wg.Go(func() { _ = s.Work(ctx) })
	}
	time.Sleep(time.Second) // of the bubble's clock: they have begun
	return func() {
		cancel()
		wg.Wait()
	}
}

func order(tenant, id string, change func(*intent.WriteIntent)) intent.WriteIntent {
	w := intent.WriteIntent{
		Tenant: tenant, Workflow: "wf-1", Step: id, Tool: "create_order", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Key: intent.Fields{"order_id": id}, Expect: intent.Fields{"amount_cents": json.Number("199900"), "currency": "USD"}, Risk: intent.RiskApprove,
	}
	if change != nil {
		change(&w)
	}
	return w
}

func (b *bench) do(w intent.WriteIntent) ledger.ID {
	b.t.Helper()
	out, err := b.engine.Do(context.Background(), w)
	if err != nil {
		b.t.Fatal(err)
	}
	return out.ID
}

// deny decides about a held write.
func (b *bench) deny(id ledger.ID) {
	b.t.Helper()
	if _, err := b.engine.Resolve(context.Background(), "acme", id, engine.Decision{Word: engine.WordDeny, By: "ada", Reason: "not wanted"}); err != nil {
		b.t.Fatal(err)
	}
}

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// What comes within a window is one message. What was decided meanwhile, what waited before
// and what is settled is in none.
func TestOneMessageForAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.do(order("acme", "before", nil))
		defer b.live(b.sender(b.ledger, b.engine, chat(nil)))()
		first := b.do(order("acme", "A-1", nil))
		b.do(order("acme", "auto", func(w *intent.WriteIntent) { w.Risk = intent.RiskAuto }))
		b.deny(b.do(order("acme", "denied", nil)))
		time.Sleep(4 * time.Minute)
		b.do(order("acme", "A-2", nil))
		diff(t, []string(nil), b.messages())
		time.Sleep(2 * time.Minute)
		got := b.messages()
		if len(got) != 1 {
			t.Fatalf("%d messages: %q", len(got), got)
		}
		for _, want := range []string{"readback: 2 items wait for a reviewer (tenant acme)\n\n- Waits for approval: Create order A-1", "https://readback.example/writes/" + string(first), "order A-2",
			"\n\nAll that waits: https://readback.example/inbox"} {
			if !strings.Contains(got[0], want) {
				t.Errorf("%q is not in %s", want, got[0])
			}
		}
		for i := range 40 {
			b.do(order("acme", fmt.Sprint("B-", i), nil))
		}
		time.Sleep(3 * time.Hour)
		if got = b.messages(); len(got) != 1 || !strings.Contains(got[0], "readback: 40 items wait") || strings.Count(got[0], "order B-") != 3 || !strings.Contains(got[0], "\nand 37 more\n") {
			t.Errorf("%q", got)
		}
	})
}

// dying is a ledger and an engine whose process dies after its n-th step that changes something.
type dying struct {
	ledger.Ledger
	engine *engine.Engine
	left   *int
}

func (d dying) dies() bool { *d.left--; return *d.left == 0 }

func (d dying) SetNote(ctx context.Context, n ledger.Note) (ledger.Note, error) {
	if *d.left <= 0 {
		return n, errDied
	}
	n, err := d.Ledger.SetNote(ctx, n)
	if d.dies() {
		return n, errDied
	}
	return n, err
}

func (d dying) Enqueue(ctx context.Context, w intent.WriteIntent) (ledger.ID, error) {
	if *d.left <= 0 {
		return "", errDied
	}
	id, err := d.engine.Enqueue(ctx, w)
	if d.dies() {
		return id, errDied
	}
	return id, err
}

// Wherever a process dies, another one continues, and each item is in one message.
func TestEachItemIsInOneMessage(t *testing.T) {
	for n := 1; n <= 9; n++ {
		t.Run(fmt.Sprint("death after change ", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				once := b.live(b.sender(b.ledger, b.engine, chat(nil)))
				once() // it has arrived
				left := n
				first := dying{b.ledger, b.engine, &left}
				defer b.live(b.sender(first, first, chat(nil)))()
				b.do(order("acme", "A-1", nil))
				time.Sleep(time.Minute)
				decided := b.do(order("acme", "A-2", nil))
				time.Sleep(10 * time.Minute)
				b.do(order("acme", "A-3", nil))
				time.Sleep(10 * time.Minute)
				b.deny(decided) // which changes the words of a message that may be recorded
				defer b.live(b.sender(b.ledger, b.engine, chat(nil)))()
				time.Sleep(time.Hour)
				all := strings.Join(b.messages(), "\n")
				for _, id := range []string{"A-1", "A-2", "A-3"} {
					if c := strings.Count(all, "order "+id); c > 1 || c == 0 && id != "A-2" {
						t.Errorf("%s is in %d messages:\n%s", id, c, all)
					}
				}
			})
		})
	}
}

// Several processes write one message.
func TestSeveralProcessesWriteOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var all []*notify.Sender
		for range 4 {
			all = append(all, b.sender(b.ledger, b.engine, chat(nil)))
		}
		defer b.live(all...)()
		for i := range 3 {
			b.do(order("acme", fmt.Sprint("A-", i), nil))
		}
		time.Sleep(time.Hour)
		if got := b.messages(); len(got) != 1 || !strings.Contains(got[0], "3 items wait") {
			t.Errorf("%q", got)
		}
	})
}

// A message that needs a reviewer itself causes no message.
func TestAMessageThatWaitsCausesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, policies.RiskRule{Tool: "readback.*", Class: intent.RiskApprove})
		c, err := config.Parse("readback.yaml", []byte(`ledger: a.db
tenant: acme
destinations: {orders: {type: simulated, url: 'http://127.0.0.1:1'}}
notifications:
  - {name: other, destination: orders, kind: order, key: {order_id: '{id}'}, expect: {amount_cents: 1, currency: USD}}
`))
		if err != nil {
			t.Fatal(err)
		}
		defer b.live(b.sender(b.ledger, b.engine, chat(nil), c.Notifications[0]))()
		b.do(order("acme", "A-1", nil))
		time.Sleep(3 * time.Hour)
		found, err := b.ledger.Find(t.Context(), ledger.Search{Tenant: "acme", States: []ledger.State{ledger.Held}})
		if err != nil || len(found.Records) != 3 {
			t.Errorf("%d writes wait, %v; want the order and its two messages", len(found.Records), err)
		}
	})
}

// A tenant's message is about its own work.
func TestTenantsGetTheirOwnMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.live(b.sender(b.ledger, b.engine, chat(func(n *config.Notification) { n.Tenants, n.Lines = []string{"acme", "globex"}, 1 })))()
		b.do(order("acme", "A-1", nil))
		b.do(order("globex", "G-1", nil))
		b.do(order("initech", "I-1", nil))
		time.Sleep(time.Hour)
		got := b.messages()
		slices.Sort(got)
		if len(got) != 2 || !strings.Contains(got[0], "1 item waits for a reviewer (tenant acme)") || !strings.Contains(got[0], "A-1") || strings.Contains(got[0], "G-1") ||
			!strings.Contains(got[1], "1 item waits for a reviewer (tenant globex)") || !strings.Contains(got[1], "G-1") || strings.Contains(got[1], "A-1") || strings.Contains(got[0]+got[1], "I-1") {
			t.Errorf("%q", got)
		}
	})
}

// In quiet hours nothing is sent, and all of it afterwards; overdue work is sent at once if it
// may be.
func TestQuietHours(t *testing.T) {
	for name, urgent := range map[string]bool{"nothing is sent": false, "overdue work is": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // which begins at midnight UTC
				b := newBench(t)
				utc, err := time.LoadLocation("UTC")
				if err != nil {
					t.Fatal(err)
				}
				defer b.live(b.sender(b.ledger, b.engine, chat(func(n *config.Notification) {
					n.Quiet = config.Quiet{From: 22 * 60, Until: 7 * 60, Zone: utc, Urgent: urgent}
				})))()
				id := b.do(order("acme", "A-1", nil))
				time.Sleep(5 * time.Hour)
				diff(t, []string(nil), b.messages())
				r, err := b.ledger.Get(t.Context(), "acme", id)
				if err == nil {
					_, err = b.ledger.Append(t.Context(), id, r.Fence, ledger.Event{Kind: ledger.EvOverdue})
				}
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				if got := b.messages(); urgent != (len(got) == 1 && strings.Contains(got[0], "The approval is overdue: Create order A-1")) {
					t.Errorf("an hour before they end: %q", got)
				}
				time.Sleep(90 * time.Minute)
				if got := b.messages(); urgent == (len(got) == 1) {
					t.Errorf("after they have ended: %q", got)
				}
			})
		})
	}
}

// Steps of the gate, sagas and stops are in it, each once, and released stops are not.
func TestStepsSagasAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.live(b.sender(b.ledger, b.engine, chat(nil)))()
		b.stuck.Store(true)
		as := gate.Caller{Tenant: "acme", Name: "bot"}
		made, err := b.gate.Create(t.Context(), as, gate.CreateRequest{WorkflowName: "payout"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.gate.Gate(t.Context(), as, made.WorkflowID, "pay", gate.GateRequest{StepType: "tool_call", IdempotencyKey: "wire-1",
			ToolContext: &gate.ToolContext{ToolName: "wire_transfer"}}); err != nil {
			t.Fatal(err)
		}
		operator := service.Who{Tenant: "acme", Name: "ben", Role: engine.RoleOperator, Via: "token"}
		for _, s := range []guards.Scope{{Destination: "orders"}, {Tool: "create_order"}} {
			if err := b.service.Stop(t.Context(), operator, s, "wrong prices"); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.service.Release(t.Context(), operator, guards.Scope{Tool: "create_order"}, "they are right"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Hour)
		got := b.messages()
		if len(got) != 1 || strings.Count(got[0], "\n- ") != 3 || !strings.Contains(got[0], "- A saga is in review: onboard-7\n  https://readback.example/sagas/onboard-7\n") || !strings.Contains(got[0], "- A step waits for approval: pay of payout\n  https://readback.example/workflows/"+made.WorkflowID+"/steps/pay\n") ||
			!strings.Contains(got[0], `- Sends are stopped: tenant "acme", destination "orders", by ben: wrong prices`) {
			t.Errorf("%q", got)
		}
	})
}

// Text of others is neither a link nor markup.
func TestTextOfOthersIsData(t *testing.T) {
	for name, c := range map[string]struct {
		slack bool
		want  string
	}{
		"plain": {false, "- Waits for approval: Create order \"<!channel>*a*`b`https[://]evil.example WWW[.]evil.example\" for $1,999.00\n"},
		"slack": {true, "- Waits for approval: `Create order \"&lt;!channel&gt;*a*'b'https://evil.example WWW.evil.example\" for $1,999.00`\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				defer b.live(b.sender(b.ledger, b.engine, chat(func(n *config.Notification) { n.Slack = c.slack })))()
				b.do(order("acme", "<!channel>*a*`b`https://evil.example WWW.evil.example", nil))
				time.Sleep(time.Hour)
				got := b.messages()
				if len(got) != 1 || !strings.Contains(got[0], c.want) {
					t.Errorf("%q; want %q in it", got, c.want)
				}
				if c.slack != strings.Contains(strings.Join(got, ""), "<https://readback.example/inbox>") {
					t.Errorf("%q", got)
				}
			})
		})
	}
}

// More steps or sagas than are listed at once are counted, with a line that not each is
// notified.
func TestMoreThanAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.live(b.sender(b.ledger, b.engine, chat(nil)))()
		b.round.Store(1)
		time.Sleep(time.Minute)
		b.round.Store(2)
		time.Sleep(2 * time.Hour)
		got := b.messages()
		if len(got) != 1 || !strings.HasPrefix(got[0], "readback: 201 items wait") || !strings.Contains(got[0], "- At least 100 sagas wait; the inbox has them, and not each is notified.\n  https://readback.example/inbox\n") {
			t.Errorf("%q", got)
		}
	})
}

// What still waits is in one message, however much comes afterwards, and what comes then is
// in time.
func TestWhatWaitsLongIsNotNotifiedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.live(b.sender(b.ledger, b.engine, chat(func(n *config.Notification) { n.Lines = 500 })))()
		operator := service.Who{Tenant: "acme", Name: "ben", Role: engine.RoleOperator, Via: "token"}
		if err := b.service.Stop(t.Context(), operator, guards.Scope{Destination: "orders"}, "wrong prices"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if got := b.messages(); len(got) != 1 || !strings.Contains(got[0], "Sends are stopped") {
			t.Fatalf("%q", got)
		}
		for round := range int64(25) {
			b.round.Store(round + 1)
			time.Sleep(10 * time.Minute)
			got := strings.Join(b.messages(), "\n")
			if strings.Contains(got, "Sends are stopped") || strings.Count(got, "A saga is in review") != 100 {
				t.Fatalf("round %d: %.300q has %d sagas", round, got, strings.Count(got, "A saga is in review"))
			}
		}
	})
}

// A refused login is in one message, however often it is refused, and none is about the
// destination of the message itself.
func TestARefusedLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		g := guards.New(b.ledger, nil, nil)
		defer func() { _ = g.Close() }()
		defer b.live(b.sender(b.ledger, b.engine, chat(nil)))()
		for range 3 {
			for _, destination := range []string{"orders", "webhook:chat"} {
				g.Observe(engine.Activity{Kind: engine.ActivityRead, Record: ledger.Record{Tenant: "acme", Destination: destination}, Login: "the token has expired"})
			}
			time.Sleep(time.Hour)
		}
		got := b.messages()
		if len(got) != 1 || !strings.Contains(got[0], "1 item waits") || !strings.Contains(got[0], "- A destination refuses the login, and its writes wait: orders\n  https://readback.example/destinations\n") {
			t.Errorf("%q", got)
		}
	})
}
