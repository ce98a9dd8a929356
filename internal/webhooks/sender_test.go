package webhooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/webhook"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/internal/wire"
	"github.com/readback-go/readback/ledger"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAA"

// message is what a receiver takes.
type message struct {
	Type      string         `json:"type"`
	Timestamp time.Time      `json:"timestamp"`
	Data      map[string]any `json:"data"`
}

// receiver keeps the messages whose id is new, and can be down.
type receiver struct {
	t *testing.T

	mu       sync.Mutex
	down     bool
	requests int
	got      map[string]message
	order    []string
	raw      strings.Builder
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		r.t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if r.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if err := wh.Verify(body, req.Header); err != nil {
		r.t.Errorf("not signed as it should be: %v", err)
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		r.t.Errorf("%v: %s", err, body)
	}
	id := req.Header.Get("webhook-id")
	if _, again := r.got[id]; !again {
		r.order = append(r.order, id)
	}
	r.got[id] = m
	r.raw.Write(body)
}

func (r *receiver) set(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// notices lists the received notices, as "type of order".
func (r *receiver) notices() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.order {
		step, _ := r.got[id].Data["step"].(string)
		all = append(all, strings.TrimSpace(r.got[id].Type+" "+step))
	}
	return all
}

// bench is an engine before a destination and a receiver, on a ledger in memory.
type bench struct {
	t      *testing.T
	world  *orders.World
	ledger *ledger.Memory
	engine *engine.Engine
	hooks  map[string]*receiver
}

func newBench(t *testing.T, hooks ...string) *bench {
	t.Helper()
	return newBenchAt(t, orders.Plain.Options(), hooks...)
}

func newBenchAt(t *testing.T, o orders.Options, hooks ...string) *bench {
	t.Helper()
	world, err := orders.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("orders", world.Destination()); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, world: world, ledger: ledger.NewMemory(), hooks: map[string]*receiver{}}
	for _, name := range hooks {
		b.hooks[name] = &receiver{t: t, got: map[string]message{}}
		c, err := webhook.New(webhook.Options{URL: "https://hooks.example/", Secret: secret, Transport: wire.Transport(b.hooks[name], nil)})
		if err != nil {
			t.Fatal(err)
		}
		if err := reg.Register(webhooks.Prefix+name, c.Destination()); err != nil {
			t.Fatal(err)
		}
	}
	b.engine = engine.New(b.ledger, &reg, nil)
	t.Cleanup(b.engine.Close)
	return b
}

// live runs workers and senders until it is stopped.
func (b *bench) live(senders ...*webhooks.Sender) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.engine.Work(ctx, &engine.WorkOptions{Idle: 10 * time.Second}) })
	for _, s := range senders {
		wg.Go(func() { _ = s.Work(ctx) })
	}
	time.Sleep(2 * time.Second)
	return func() {
		cancel()
		wg.Wait()
	}
}

func (b *bench) sender(l ledger.Ledger, hooks ...webhooks.Hook) *webhooks.Sender {
	return webhooks.New(l, b.engine, webhooks.Options{Hooks: hooks, ReviewUI: "https://desk.example/"})
}

func order(id string) intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: "acme", Workflow: "wf-1", Step: id, Tool: "orders.create", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Key:    intent.Fields{"order_id": id},
		Expect: intent.Fields{"amount_cents": json.Number("199900"), "currency": "USD"},
	}
}

func (b *bench) do(w intent.WriteIntent) engine.Outcome {
	b.t.Helper()
	out, err := b.engine.Do(context.Background(), w)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func TestHooksAreNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "ops")
		b.do(order("before"))
		defer b.live(b.sender(b.ledger, webhooks.Hook{Name: "ops"}))()
		out := b.do(order("A-1"))
		held := order("A-2")
		held.Risk = intent.RiskApprove
		waits := b.do(held)
		if _, err := b.engine.Resolve(t.Context(), "acme", waits.ID, engine.Decision{Word: engine.WordDeny, By: "ada", Reason: "no"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		got := b.hooks["ops"].notices()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"write.held A-2", "write.settled A-1", "write.settled A-2"}, got); diff != "" {
			t.Error(diff)
		}
		for _, m := range b.hooks["ops"].got {
			if m.Data["step"] != "A-1" {
				continue
			}
			want := map[string]any{"write": string(out.ID), "event": float64(4), "tenant": "acme", "destination": "orders", "kind": "order", "settlement": "verified",
				"status": "verified", "verdict": "verified", "text": out.Text, "workflow": "wf-1", "step": "A-1", "tool": "orders.create",
				"sends": 1.0, "reads": 2.0, "url": "https://desk.example/writes/" + string(out.ID)}
			delete(want, "event")
			delete(m.Data, "event")
			if diff := cmp.Diff(want, m.Data); diff != "" || m.Timestamp.IsZero() {
				t.Error(diff, m.Timestamp)
			}
		}
		if raw := b.hooks["ops"].raw.String(); strings.Contains(raw, "199900") || strings.Contains(raw, "order_id") {
			t.Errorf("the notice contains expected or observed values: %s", raw)
		}
	})
}

// A verified write that a recheck contradicts is notified again, as a review.
func TestHooksAreNotifiedOfAFlip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Unique.Options()
		o.Recheck = connectors.Within(time.Hour)
		b := newBenchAt(t, o, "ops")
		if err := b.world.Set(orders.Fault{Kind: orders.Rollback, Delay: 10 * time.Minute, Times: 1}); err != nil {
			t.Fatal(err)
		}
		defer b.live(b.sender(b.ledger, webhooks.Hook{Name: "ops"}))()
		out := b.do(order("A-1"))
		time.Sleep(2 * time.Hour)
		if diff := cmp.Diff([]string{"write.settled A-1", "write.review A-1"}, b.hooks["ops"].notices()); diff != "" {
			t.Error(diff)
		}
		for _, m := range b.hooks["ops"].got {
			until, pending := m.Data["recheck_until"]
			if settled := m.Type == "write.settled"; settled != pending || settled && until != out.RecheckUntil.UTC().Format(time.RFC3339) {
				t.Errorf("%s: a recheck is pending until %v, want %s", m.Type, until, out.RecheckUntil)
			}
		}
	})
}

// What was sent and never compared is in the message as it is in the outcome.
func TestWhatWasNotComparedIsInTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "ops")
		defer b.live(b.sender(b.ledger, webhooks.Hook{Name: "ops"}))()
		w := order("A-1")
		w.Payload = intent.Fields{"note": "by phone", "a/b": "c"}
		b.do(w)
		b.do(order("A-2"))
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		got := map[any]any{} // by step: messages come in any order
		for _, m := range b.hooks["ops"].got {
			got[m.Data["step"]] = m.Data["not_checked"]
		}
		if diff := cmp.Diff(map[any]any{"A-1": []any{"/a~1b", "/note"}, "A-2": nil}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// A text that quotes the destination is marked in the message as it is in the outcome.
func TestTextOfOthersIsMarkedInTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "ops")
		if err := b.world.Set(orders.Fault{Kind: orders.DroppedField, Times: 1}); err != nil {
			t.Fatal(err)
		}
		defer b.live(b.sender(b.ledger, webhooks.Hook{Name: "ops"}))()
		outs := map[any]any{}
		for _, id := range []string{"A-1", "A-2"} {
			out := b.do(order(id))
			if outs[id] = nil; slices.Contains(out.Untrusted, "/text") {
				outs[id] = []any{"/text"}
			}
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		got := map[any]any{}
		for _, m := range b.hooks["ops"].got {
			got[m.Data["step"]] = m.Data["untrusted"]
		}
		if diff := cmp.Diff(outs, got); diff != "" || outs["A-1"] == nil || outs["A-2"] != nil {
			t.Errorf("%s\n%v", diff, outs)
		}
	})
}

// A notice of a notice would have a notice.
func TestNoticesCauseNoNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "one", "two")
		all := webhooks.Events()
		defer b.live(b.sender(b.ledger, webhooks.Hook{Name: "one", Events: all}, webhooks.Hook{Name: "two", Events: all}))()
		b.do(order("A-1"))
		time.Sleep(24 * time.Hour)
		for name, r := range b.hooks {
			if got := r.notices(); len(got) != 1 || r.requests != 1 {
				t.Errorf("%s: %d requests, %v", name, r.requests, got)
			}
		}
	})
}

func TestFilters(t *testing.T) {
	for name, c := range map[string]struct {
		hook webhooks.Hook
		want []string
	}{
		"default":             {webhooks.Hook{}, []string{"write.held A-1", "write.settled A-1", "write.settled A-2"}},
		"one event":           {webhooks.Hook{Events: []string{"write.held"}}, []string{"write.held A-1"}},
		"approvals":           {webhooks.Hook{Events: []string{"write.approved"}}, []string{"write.approved A-1"}},
		"another tenant":      {webhooks.Hook{Tenants: []string{"umbrella"}}, nil},
		"that tenant":         {webhooks.Hook{Tenants: []string{"umbrella", "acme"}, Events: []string{"write.held"}}, []string{"write.held A-1"}},
		"another destination": {webhooks.Hook{Destinations: []string{"crm"}}, nil},
		"that destination":    {webhooks.Hook{Destinations: []string{"crm", "orders"}, Events: []string{"write.held"}}, []string{"write.held A-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, "ops")
				c.hook.Name = "ops"
				defer b.live(b.sender(b.ledger, c.hook))()
				held := order("A-1")
				held.Risk = intent.RiskApprove
				out := b.do(held)
				if _, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordApprove, By: "ada", Reason: "yes"}); err != nil {
					t.Fatal(err)
				}
				b.do(order("A-2"))
				time.Sleep(time.Hour)
				got := b.hooks["ops"].notices()
				slices.Sort(got)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// A receiver that is down for long gets everything when it is back, once.
func TestAReceiverThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "ops")
		r := b.hooks["ops"]
		defer b.live(b.sender(b.ledger, webhooks.Hook{Name: "ops"}))()
		r.set(true)
		for i := range 5 {
			b.do(order(fmt.Sprint("A-", i)))
		}
		time.Sleep(3 * time.Hour)
		if got := r.notices(); len(got) != 0 {
			t.Fatalf("%v", got)
		}
		r.set(false)
		time.Sleep(3 * time.Hour)
		got := r.notices()
		slices.Sort(got)
		if len(got) != 5 || len(slices.Compact(got)) != 5 {
			t.Errorf("%v after %d requests", got, r.requests)
		}
		if r.requests > 5*webhook.DefaultSends {
			t.Errorf("%d requests", r.requests)
		}
	})
}

// One that never recovers goes to review in the end.
func TestAReceiverThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "ops")
		r := b.hooks["ops"]
		defer b.live(b.sender(b.ledger, webhooks.Hook{Name: "ops"}))()
		r.set(true)
		b.do(order("A-1"))
		time.Sleep(30 * time.Hour)
		open, err := b.ledger.List(t.Context(), ledger.Filter{Tenant: "acme", States: []ledger.State{ledger.Review}})
		if err != nil || len(open) != 1 || open[0].Destination != "webhook:ops" || r.requests != webhook.DefaultSends {
			t.Errorf("%d requests, %+v, %v", r.requests, open, err)
		}
	})
}

// faulty is a ledger that fails as configured.
type faulty struct {
	*ledger.Memory
	mu      sync.Mutex
	setNote func(n ledger.Note) error
	after   bool // it fails after it did it
}

var errBroken = errors.New("the ledger is gone")

func (f *faulty) SetNote(ctx context.Context, n ledger.Note) (ledger.Note, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if f.setNote != nil {
		err = f.setNote(n)
	}
	if err != nil && !f.after {
		return n, err
	}
	return cmpOr(f.Memory.SetNote(ctx, n))(err)
}

func cmpOr(n ledger.Note, err error) func(error) (ledger.Note, error) {
	return func(other error) (ledger.Note, error) { return n, errors.Join(err, other) }
}

// What fails between a notice and the cursor makes none twice and loses none.
func TestCrashes(t *testing.T) {
	for _, after := range []bool{false, true} {
		for every := 2; every < 5; every++ {
			t.Run(fmt.Sprintf("after %v, one of %d", after, every), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, "ops")
					n := 0
					f := &faulty{Memory: b.ledger, after: after, setNote: func(note ledger.Note) error {
						if n++; n%every != 0 {
							return errBroken
						}
						return nil
					}}
					defer b.live(b.sender(f, webhooks.Hook{Name: "ops"}))()
					time.Sleep(time.Minute)
					for i := range 40 {
						b.do(order(fmt.Sprint("A-", i)))
						time.Sleep(time.Second)
					}
					time.Sleep(time.Hour)
					b.once(40)
				})
			})
		}
	}
}

// once expects one notice of every write.
func (b *bench) once(n int) {
	b.t.Helper()
	counts := map[string]int{}
	for _, what := range b.hooks["ops"].notices() {
		counts[what]++
	}
	for what, times := range counts {
		if times != 1 {
			b.t.Errorf("%s: %d notices", what, times)
		}
	}
	if len(counts) != n || b.hooks["ops"].requests != n {
		b.t.Errorf("%d of %d delivered, in %d requests: %v", len(counts), n, b.hooks["ops"].requests, slices.Sorted(maps.Keys(counts)))
	}
}

// Several processes share the work.
func TestSeveralSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "ops")
		var senders []*webhooks.Sender
		for range 4 {
			senders = append(senders, b.sender(b.ledger, webhooks.Hook{Name: "ops"}))
		}
		defer b.live(senders...)()
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() { b.do(order(fmt.Sprint("A-", i))) })
		}
		wg.Wait()
		time.Sleep(time.Hour)
		b.once(300)
	})
}

// One that dies is followed by another one.
func TestASenderThatDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "ops")
		first := b.live(b.sender(b.ledger, webhooks.Hook{Name: "ops"}))
		b.do(order("A-0"))
		time.Sleep(2 * time.Second)
		first()
		b.do(order("A-1"))
		defer b.live(b.sender(b.ledger, webhooks.Hook{Name: "ops"}))()
		b.do(order("A-2"))
		time.Sleep(time.Minute)
		b.once(3)
	})
}

// What was pruned before its notice is missed, and that is notified.
func TestAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "ops")
		first := b.live(b.sender(b.ledger, webhooks.Hook{Name: "ops"}))
		b.do(order("A-0"))
		time.Sleep(time.Minute)
		first()
		b.do(order("A-1"))
		b.do(order("A-2"))
		time.Sleep(2 * ledger.ChangesKept)
		b.do(order("A-3"))
		if _, err := b.ledger.Prune(t.Context(), ledger.Prune{Keep: 1000 * time.Hour, Remember: 10000 * time.Hour}); err != nil {
			t.Fatal(err)
		}
		defer b.live(b.sender(b.ledger, webhooks.Hook{Name: "ops", Tenants: []string{"acme"}, Events: []string{"write.settled"}}), b.sender(b.ledger, webhooks.Hook{Name: "ops", Tenants: []string{"acme"}}))()
		time.Sleep(time.Hour)
		got := b.hooks["ops"].notices()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"readback.gap", "write.settled A-0", "write.settled A-3"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// full refuses enqueued writes for a while.
type full struct {
	webhooks.Engine
	mu   sync.Mutex
	left int
}

func (f *full) Enqueue(ctx context.Context, w intent.WriteIntent) (ledger.ID, error) {
	f.mu.Lock()
	f.left--
	refuse := f.left >= 0
	f.mu.Unlock()
	if refuse {
		return "", ledger.ErrFull
	}
	return f.Engine.Enqueue(ctx, w)
}

// odd takes no notice about one write.
type odd struct{ webhooks.Engine }

func (o odd) Enqueue(ctx context.Context, w intent.WriteIntent) (ledger.ID, error) {
	if data, _ := w.Expect["data"].(map[string]any); data["step"] == "A-1" {
		return "", fmt.Errorf("%w: it is odd", intent.ErrInvalid)
	}
	return o.Engine.Enqueue(ctx, w)
}

// A notice that can never be made does not hold up the others.
func TestANoticeThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "ops")
		defer b.live(webhooks.New(b.ledger, odd{b.engine}, webhooks.Options{Hooks: []webhooks.Hook{{Name: "ops"}}}))()
		for i := range 3 {
			b.do(order(fmt.Sprint("A-", i)))
		}
		time.Sleep(time.Hour)
		b.once(2)
	})
}

// A queue that is full loses nothing.
func TestAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "ops")
		s := webhooks.New(b.ledger, &full{Engine: b.engine, left: 30}, webhooks.Options{Hooks: []webhooks.Hook{{Name: "ops"}}})
		defer b.live(s)()
		for i := range 5 {
			b.do(order(fmt.Sprint("A-", i)))
		}
		time.Sleep(time.Hour)
		b.once(5)
	})
}
