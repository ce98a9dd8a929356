package nats_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/readback-go/readback/adapters/nats"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/adaptertest"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// charge returns the write of a message. Tool "held" needs approval.
func charge(m jetstream.Msg) (intent.WriteIntent, error) {
	var o adaptertest.Order
	if err := json.Unmarshal(m.Data(), &o); err != nil {
		return intent.WriteIntent{}, err
	}
	tool := "charge"
	if m.Headers().Get("Held") != "" {
		tool = "held"
	}
	return adaptertest.Charge(tool, o)
}

// startServer starts a server of NATS in this process.
func startServer(o *server.Options) (*server.Server, error) {
	o.JetStream, o.NoSigs, o.NoLog = true, true, true
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	go s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		return nil, errors.New("the server of NATS is not ready")
	}
	return s, nil
}

// bench is a server, its streams, and an engine before a destination.
type bench struct {
	*adaptertest.Bench
	js jetstream.JetStream
}

// inBubble runs a test with a server in this process, in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	ats.Register() // the server's clock of accesses, which is one for the process and cannot be in a bubble
	defer ats.Unregister()
	synctest.Test(t, func(t *testing.T) { test(t, newBench(t)) })
}

func newBench(t *testing.T) *bench {
	t.Helper()
	s, err := startServer(&server.Options{StoreDir: t.TempDir(), DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	conn, err := natsgo.Connect("", natsgo.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	b := &bench{Bench: adaptertest.NewBench(t)}
	if b.js, err = jetstream.New(conn); err != nil {
		t.Fatal(err)
	}
	if err := streams(t.Context(), b.js); err != nil {
		t.Fatal(err)
	}
	return b
}

// streams makes the streams of all tests. A copy is recognised for a moment only.
func streams(ctx context.Context, js jetstream.JetStream) error {
	for name, subject := range map[string]string{"ORDERS": "orders.>", "DEAD": "dead.>", "RESULTS": "results.>"} {
		if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{subject}, Duplicates: 100 * time.Millisecond}); err != nil {
			return err
		}
	}
	return nil
}

func consumerOf(ctx context.Context, js jetstream.JetStream, settled bool) (jetstream.Consumer, error) {
	c := jetstream.ConsumerConfig{Durable: "writes", MaxDeliver: -1, AckPolicy: jetstream.AckExplicitPolicy, AckWait: 2 * time.Second}
	if settled {
		c.MaxAckPending = 1
	}
	return js.CreateOrUpdateConsumer(ctx, "ORDERS", c)
}

// run consumes and works until the test ends, or stop is called.
func (b *bench) run(o nats.Options) (stop func()) {
	b.T.Helper()
	from, err := consumerOf(b.T.Context(), b.js, o.Settled)
	if err != nil {
		b.T.Fatal(err)
	}
	if o.Intent == nil {
		o.Intent = charge
	}
	o.DeadLetters = "dead.orders"
	return b.Run(
		func(ctx context.Context) error { return nats.Consume(ctx, b.js, from, b.Engine, o) },
		func(ctx context.Context) error { return b.Engine.Work(ctx, &engine.WorkOptions{Idle: time.Minute}) })
}

// results publishes results until the test ends, or stop is called.
func (b *bench) results() (stop func()) {
	stop = b.Run(func(ctx context.Context) error { return nats.Results(ctx, b.js, b.Ledger, "results.orders", "acme") })
	synctest.Wait() // it is subscribed
	return stop
}

// publish publishes a message as a new one, also where an earlier one has its ID: the server forgets that.
func (b *bench) publish(data string, header ...string) {
	b.T.Helper()
	m := &natsgo.Msg{Subject: "orders.new", Data: []byte(data), Header: natsgo.Header{}}
	for i := 0; i < len(header); i += 2 {
		m.Header.Set(header[i], header[i+1])
	}
	b.Eventually("the server takes the message", func() bool {
		ack, err := b.js.PublishMsg(b.T.Context(), m)
		if err != nil {
			b.T.Fatal(err)
		}
		return !ack.Duplicate
	})
}

// acknowledged waits until the consumer has acknowledged all messages.
func (b *bench) acknowledged() {
	b.T.Helper()
	b.Eventually("all messages are acknowledged", func() bool { return done(b.T.Context(), b.js) })
}

func done(ctx context.Context, js jetstream.JetStream) bool {
	c, err := js.Consumer(ctx, "ORDERS", "writes")
	if err != nil {
		return false
	}
	info := c.CachedInfo()
	return info.NumPending == 0 && info.NumAckPending == 0
}

// letters are the messages of a stream.
func (b *bench) letters(stream string, n int) (all []*jetstream.RawStreamMsg) {
	b.T.Helper()
	s, err := b.js.Stream(b.T.Context(), stream)
	if err != nil {
		b.T.Fatal(err)
	}
	for seq := 1; seq <= n; seq++ {
		b.Eventually(fmt.Sprintf("message %d of %s", seq, stream), func() bool {
			m, err := s.GetMsg(b.T.Context(), uint64(seq))
			if err != nil {
				return false
			}
			all = append(all, m)
			return true
		})
	}
	if info, err := s.Info(b.T.Context()); err != nil || info.State.Msgs != uint64(n) {
		b.T.Fatalf("%s has %d messages, %v; want %d", stream, info.State.Msgs, err, n)
	}
	return all
}

// A lost response is read back, and the result is published under the write's ID.
func TestLostAnswer(t *testing.T) {
	for _, settled := range []bool{false, true} {
		t.Run(fmt.Sprintf("settled %t", settled), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				if err := b.World.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1}); err != nil {
					t.Fatal(err)
				}
				b.run(nats.Options{Settled: settled})
				b.results()
				b.publish(`{"order_id": "A-1", "amount_cents": 1999}`)
				rec := b.Status("A-1", ledger.Verified)
				b.acknowledged()
				b.Once("A-1")
				if rec.Sends != 1 || rec.Step != "orders.new" || !strings.HasPrefix(rec.Workflow, "nats:ORDERS/1/") {
					t.Errorf("%d sends, workflow %q, step %q", rec.Sends, rec.Workflow, rec.Step)
				}
				result := b.letters("RESULTS", 1)[0]
				if result.Header.Get("Readback-Write") != string(rec.ID) || !strings.Contains(string(result.Data), `"verified"`) {
					t.Errorf("the result is %v, %s", result.Header, result.Data)
				}
			})
		})
	}
}

// A message that is delivered again, replayed or published again is the same write.
func TestRepeatedMessages(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		stop := b.run(nats.Options{})
		b.publish(`{"order_id": "A-1", "amount_cents": 1999}`, jetstream.MsgIDHeader, "order-1")
		b.publish(`{"order_id": "A-2", "amount_cents": 1999}`)
		b.Status("A-1", ledger.Verified)
		b.Status("A-2", ledger.Verified)
		b.acknowledged()
		b.publish(`{"order_id": "A-1", "amount_cents": 1999}`, jetstream.MsgIDHeader, "order-1")
		b.acknowledged()
		stop()
		// A consumer that is made again begins with the first message.
		if err := b.js.DeleteConsumer(t.Context(), "ORDERS", "writes"); err != nil {
			t.Fatal(err)
		}
		b.run(nats.Options{})
		b.acknowledged()
		b.Once("A-1", "A-2")
		if n := len(b.All()); n != 2 {
			t.Errorf("%d writes; want 2", n)
		}
		b.letters("DEAD", 0)
	})
}

// A stream that is made again begins with sequence 1: its messages are other writes.
func TestStreamMadeAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		stop := b.run(nats.Options{})
		b.publish(`{"order_id": "A-1", "amount_cents": 1999}`)
		b.Status("A-1", ledger.Verified)
		b.acknowledged()
		stop()
		if err := b.js.DeleteStream(t.Context(), "ORDERS"); err != nil {
			t.Fatal(err)
		}
		if err := streams(t.Context(), b.js); err != nil {
			t.Fatal(err)
		}
		b.run(nats.Options{})
		b.publish(`{"order_id": "A-2", "amount_cents": 1999}`)
		b.Status("A-2", ledger.Verified)
		b.Once("A-1", "A-2")
	})
}

// The Workflow of an intent, a Nats-Msg-Id, and the sequence and time of a message are names of
// different messages, also where one has the text of another.
func TestNames(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.run(nats.Options{Intent: func(m jetstream.Msg) (intent.WriteIntent, error) {
			w, err := charge(m)
			w.Workflow = m.Headers().Get("Workflow")
			return w, err
		}})
		b.publish(`{"order_id": "A-1"}`)
		name := strings.TrimPrefix(b.Status("A-1", ledger.Verified).Workflow, "nats:ORDERS/")
		b.publish(`{"order_id": "A-2"}`, "Workflow", name)
		b.publish(`{"order_id": "A-3"}`, jetstream.MsgIDHeader, name)
		b.publish(`{"order_id": "A-4"}`, "Workflow", "order-1")
		b.publish(`{"order_id": "A-5"}`, jetstream.MsgIDHeader, "order-1")
		b.publish(`{"order_id": "A-6"}`, "Workflow", "Nats-Msg-Id/order-1")
		for _, id := range []string{"A-2", "A-3", "A-4", "A-5", "A-6"} {
			b.Status(id, ledger.Verified)
		}
		b.letters("DEAD", 0)
	})
}

// Writes that wait for a reviewer do not stop the consumer.
func TestHeldWritesDoNotStopTheConsumer(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.run(nats.Options{})
		const held = 1100 // more than the server delivers without an acknowledgement
		for i := range held {
			if _, err := b.js.PublishMsgAsync(&natsgo.Msg{Subject: "orders.new", Header: natsgo.Header{"Held": {"1"}},
				Data: fmt.Appendf(nil, `{"order_id": "H-%d", "amount_cents": 1}`, i)}); err != nil {
				t.Fatal(err)
			}
		}
		<-b.js.PublishAsyncComplete()
		b.publish(`{"order_id": "A-1", "amount_cents": 1999}`)
		b.Status("A-1", ledger.Verified)
		b.acknowledged()
		if n := len(b.World.Effects()); n != 1 {
			t.Errorf("%d effects; want 1", n)
		}
	})
}

// With Settled the order of messages is the order of effects, also behind one that waits.
func TestSettledKeepsTheOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.run(nats.Options{Settled: true})
		b.publish(`{"order_id": "H-1", "amount_cents": 1}`, "Held", "1")
		b.publish(`{"order_id": "A-2", "amount_cents": 2}`)
		held := b.Status("H-1", ledger.StatusHeld)
		b.Eventually("the held message was delivered twice", func() bool {
			c, err := b.js.Consumer(t.Context(), "ORDERS", "writes")
			return err == nil && c.CachedInfo().NumRedelivered > 0
		})
		if n := len(b.World.Effects()); n != 0 {
			t.Errorf("%d effects before the decision; want 0", n)
		}
		b.Decide(held.ID, engine.WordApprove)
		b.Status("A-2", ledger.Verified)
		b.acknowledged()
		var order []string
		for _, e := range b.World.Effects() {
			order = append(order, e.OrderID)
		}
		if fmt.Sprint(order) != "[H-1 A-2]" {
			t.Errorf("the order of effects is %v", order)
		}
	})
}

// A message is not delivered again while its write is made, however long the server would wait.
func TestSettledIsInProgress(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		if err := b.World.Set(orders.Fault{Kind: orders.UnreadableRead, How: "500", Times: 5}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		b.run(nats.Options{Settled: true})
		b.publish(`{"order_id": "A-1", "amount_cents": 1999}`)
		b.Status("A-1", ledger.Verified)
		c, err := b.js.Consumer(t.Context(), "ORDERS", "writes")
		if err != nil {
			t.Fatal(err)
		}
		if n, took := c.CachedInfo().Delivered.Consumer, time.Since(began); n != 1 || took < 3*time.Second {
			t.Errorf("delivered %d times in %s; want 1", n, took)
		}
		b.acknowledged()
	})
}

// A reviewer decides two days later, in the server's and the ledger's virtual time: the message
// waited in the ledger, or with Settled in the stream.
func TestDecisionDaysLater(t *testing.T) {
	for _, settled := range []bool{false, true} {
		t.Run(fmt.Sprintf("settled %t", settled), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.run(nats.Options{Settled: settled})
				stop := b.results()
				b.publish(`{"order_id": "A-1", "amount_cents": 1999}`, "Held", "1")
				held := b.Status("A-1", ledger.StatusHeld)
				b.letters("RESULTS", 1)
				stop()
				time.Sleep(2 * 24 * time.Hour) // of virtual time
				b.results()
				if is := done(t.Context(), b.js); is == settled {
					t.Errorf("acknowledged %t", is)
				}
				b.Decide(held.ID, engine.WordApprove)
				b.Status("A-1", ledger.Verified)
				b.acknowledged()
				b.Once("A-1")
				results := b.letters("RESULTS", 2)
				if !strings.Contains(string(results[0].Data), "write.held") || !strings.Contains(string(results[1].Data), `"verified"`) {
					t.Errorf("the results are %s and %s", results[0].Data, results[1].Data)
				}
			})
		})
	}
}

// What can never be a write becomes a dead letter whole, with its reason, and does not stop the others.
func TestDeadLetters(t *testing.T) {
	unstable := 0
	for name, c := range map[string]struct {
		data   string
		header []string
		intent func(jetstream.Msg) (intent.WriteIntent, error)
		reason string
	}{
		"no JSON":         {data: "<order\r\nid=1>", reason: "invalid character"},
		"empty":           {reason: "unexpected end"},
		"no business key": {data: `{"amount_cents": 5}`, reason: "order_id"},
		"an unknown destination": {data: `{"order_id": "B-1"}`, reason: `shop`, intent: func(m jetstream.Msg) (intent.WriteIntent, error) {
			w, err := charge(m)
			w.Destination = "shop"
			return w, err
		}},
		"a name that changes": {data: `{"order_id": "B-2"}`, reason: "changed the identity", intent: func(m jetstream.Msg) (intent.WriteIntent, error) {
			w, err := charge(m)
			unstable++
			w.Workflow = fmt.Sprint("run-", unstable)
			return w, err
		}},
		"another request under one ID": {data: `{"order_id": "A-1", "amount_cents": 5}`, header: []string{jetstream.MsgIDHeader, "order-1"}, reason: "digest"},
		"instructions":                 {data: "x", header: []string{"Trace", "t-1", "Nats-Expected-Stream", "ORDERS"}, reason: "invalid character"},
		"a reason with a line end": {data: "x", reason: `a\nNats-Rollup: all`, intent: func(jetstream.Msg) (intent.WriteIntent, error) {
			return intent.WriteIntent{}, errors.New("a\nNats-Rollup: all")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				if c.intent == nil {
					c.intent = charge
				}
				b.run(nats.Options{Intent: func(m jetstream.Msg) (intent.WriteIntent, error) {
					if m.Headers().Get("Good") != "" {
						return charge(m)
					}
					return c.intent(m)
				}})
				b.publish(`{"order_id": "A-1", "amount_cents": 1999}`, jetstream.MsgIDHeader, "order-1", "Good", "1")
				b.acknowledged()
				b.publish(c.data, c.header...)
				b.publish(`{"order_id": "A-3", "amount_cents": 1999}`, "Good", "1")
				b.Status("A-1", ledger.Verified)
				b.Status("A-3", ledger.Verified)
				b.acknowledged()
				letter := b.letters("DEAD", 1)[0]
				h := letter.Header
				if string(letter.Data) != c.data || !strings.Contains(h.Get(nats.Reason), c.reason) || h.Get(nats.FromStream) != "ORDERS" || h.Get(nats.FromSequence) != "2" {
					t.Errorf("the letter is %q, %v", letter.Data, h)
				}
				for i := 0; i < len(c.header); i += 2 {
					want := c.header[i+1]
					if name := c.header[i]; name == jetstream.MsgIDHeader && h.Get(nats.FromID) != want || name == "Trace" && h.Get(name) != want {
						t.Errorf("header %s is lost: %v", name, h)
					}
				}
				b.Once("A-1", "A-3")
				if n := len(b.World.Effects()); n != 2 {
					t.Errorf("%d effects; want 2", n)
				}
			})
		})
	}
}

// A message that is as large as a letter may be does not come again for ever: its letter names it.
func TestLargeMessage(t *testing.T) {
	for name, c := range map[string]struct {
		size  int
		limit int32
	}{"for the connection": {1<<20 - 50, -1}, "for the stream": {2000, 1000}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				if _, err := b.js.UpdateStream(t.Context(), jetstream.StreamConfig{Name: "DEAD", Subjects: []string{"dead.>"}, MaxMsgSize: c.limit}); err != nil {
					t.Fatal(err)
				}
				b.run(nats.Options{})
				b.publish("<" + strings.Repeat("x", c.size))
				b.acknowledged()
				if h := b.letters("DEAD", 1)[0].Header; h.Get(nats.FromStream) != "ORDERS" || h.Get(nats.FromSequence) != "1" || !strings.Contains(h.Get(nats.Reason), "invalid character") {
					t.Errorf("the letter is %v", h)
				}
			})
		})
	}
}

// Two consumers with one name for their writes are one write, or the second becomes a dead letter.
func TestOneNameTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.run(nats.Options{Intent: func(m jetstream.Msg) (intent.WriteIntent, error) {
			w, err := charge(m)
			w.Workflow, w.Step = "nightly", "charge"
			return w, err
		}})
		b.publish(`{"order_id": "A-1", "amount_cents": 1999}`)
		b.publish(`{"order_id": "A-1", "amount_cents": 1999}`)
		b.publish(`{"order_id": "A-2", "amount_cents": 1999}`)
		b.acknowledged()
		b.Status("A-1", ledger.Verified)
		b.Once("A-1")
		if n := len(b.All()); n != 1 {
			t.Errorf("%d writes; want 1", n)
		}
		if h := b.letters("DEAD", 1)[0].Header; h.Get(nats.FromSequence) != "3" {
			t.Errorf("the letter is %v", h)
		}
	})
}

// A consumer that would lose messages is refused, and so are dead letters that are lost.
func TestRefusedConsumers(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*jetstream.ConsumerConfig, *nats.Options)
		problem string
	}{
		"no intent":                        {func(_ *jetstream.ConsumerConfig, o *nats.Options) { o.Intent = nil }, "Options.Intent"},
		"no acknowledgement":               {func(c *jetstream.ConsumerConfig, _ *nats.Options) { c.AckPolicy = jetstream.AckNonePolicy }, "AckPolicy"},
		"all acknowledged at once":         {func(c *jetstream.ConsumerConfig, _ *nats.Options) { c.AckPolicy = jetstream.AckAllPolicy }, "AckPolicy"},
		"no durable":                       {func(c *jetstream.ConsumerConfig, _ *nats.Options) { c.Name, c.Durable = "refused", "" }, "Durable"},
		"three deliveries":                 {func(c *jetstream.ConsumerConfig, _ *nats.Options) { c.MaxDeliver = 3 }, "MaxDeliver"},
		"headers only":                     {func(c *jetstream.ConsumerConfig, _ *nats.Options) { c.HeadersOnly = true }, "HeadersOnly"},
		"order":                            {func(_ *jetstream.ConsumerConfig, o *nats.Options) { o.Settled = true }, "MaxAckPending"},
		"no dead letters":                  {func(_ *jetstream.ConsumerConfig, o *nats.Options) { o.DeadLetters = "" }, "DeadLetters"},
		"dead letters are lost":            {func(_ *jetstream.ConsumerConfig, o *nats.Options) { o.DeadLetters = "lost" }, "DeadLetters"},
		"dead letters are dropped":         {func(_ *jetstream.ConsumerConfig, o *nats.Options) { o.DeadLetters = "dropped" }, "interest"},
		"dead letters come back":           {func(_ *jetstream.ConsumerConfig, o *nats.Options) { o.DeadLetters = "orders.dead" }, "DeadLetters"},
		"dead letters have no one subject": {func(_ *jetstream.ConsumerConfig, o *nats.Options) { o.DeadLetters = "dead.*" }, "DeadLetters"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				if _, err := b.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "DROPPED", Subjects: []string{"dropped"}, Retention: jetstream.InterestPolicy}); err != nil {
					t.Fatal(err)
				}
				config := jetstream.ConsumerConfig{Durable: "refused", MaxDeliver: -1, AckPolicy: jetstream.AckExplicitPolicy}
				o := nats.Options{Intent: charge, DeadLetters: "dead.orders"}
				c.change(&config, &o)
				from, err := b.js.CreateConsumer(t.Context(), "ORDERS", config)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if err := nats.Consume(ctx, b.js, from, b.Engine, o); err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// A consumer that is removed ends Consume with the reason.
func TestRemovedConsumer(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		from, err := consumerOf(t.Context(), b.js, false)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			ended <- nats.Consume(t.Context(), b.js, from, b.Engine, nats.Options{Intent: charge, DeadLetters: "dead.orders"})
		}()
		b.publish(`{"order_id": "A-1", "amount_cents": 1999}`)
		b.acknowledged()
		if err := b.js.DeleteConsumer(t.Context(), "ORDERS", "writes"); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "ORDERS") {
			t.Errorf("got %v", err)
		}
	})
}

// Results are of named tenants.
func TestResultsOfNoTenant(t *testing.T) {
	if err := nats.Results(t.Context(), nil, ledger.NewMemory(), "results.orders"); err == nil {
		t.Error("it published the results of all tenants")
	}
}

func TestMain(m *testing.M) {
	adaptertest.Main(m, map[string]func(context.Context) error{"server": serve, "worker": worker})
}

// serve is the server as a process of its own.
func serve(ctx context.Context) error {
	var port int
	if _, err := fmt.Sscan(os.Getenv("NATS_PORT"), &port); err != nil {
		return err
	}
	s, err := startServer(&server.Options{StoreDir: os.Getenv("NATS_DIR"), Host: "127.0.0.1", Port: port})
	if err != nil {
		return err
	}
	fmt.Println(s.ClientURL())
	<-ctx.Done()
	return nil
}
