package kafka_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/readback-go/readback/adapters/kafka"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/adaptertest"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

func TestMain(m *testing.M) {
	adaptertest.Main(m, map[string]func(context.Context) error{"broker": broker, "worker": worker})
}

// charge returns the write of a record, with the ID of its header, if any. Tool "held" needs approval.
func charge(r *kgo.Record) (intent.WriteIntent, error) {
	var o adaptertest.Order
	if err := json.Unmarshal(r.Value, &o); err != nil {
		return intent.WriteIntent{}, err
	}
	tool := "charge"
	if header(r, "held") != "" {
		tool = "held"
	}
	w, err := adaptertest.Charge(tool, o)
	w.Workflow = header(r, "id")
	return w, err
}

const group = "writes"

// bench is a cluster, and an engine before a destination.
type bench struct {
	*adaptertest.Bench
	network kfake.VirtualNetwork
	cluster *kfake.Cluster
	client  *kgo.Client // produces
}

// inBubble runs a test with a cluster in this process, in virtual time. The topic orders has two
// partitions.
func inBubble(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{Bench: adaptertest.NewBench(t)}
		var err error
		if b.cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.ListenFn(b.network.Listen), kfake.SeedTopics(2, "orders"), kfake.SeedTopics(1, "dead", "results")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.cluster.Close)
		b.client = b.connect(kgo.RecordPartitioner(kgo.ManualPartitioner()))
		test(t, b)
	})
}

func (b *bench) connect(o ...kgo.Opt) *kgo.Client {
	b.T.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.Dialer(b.network.DialContext)}, o...)...)
	if err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(c.Close)
	return c
}

// member are the options of a client of the group.
func member(group string) []kgo.Opt {
	return []kgo.Opt{kgo.ConsumerGroup(group), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
}

// run consumes and works until the test ends, or stop is called.
func (b *bench) run(group string, o kafka.Options) (stop func()) {
	b.T.Helper()
	if o.Intent == nil {
		o.Intent = charge
	}
	o.DeadLetters = "dead"
	client := b.connect(member(group)...)
	end := b.Run(
		func(ctx context.Context) error { return kafka.Consume(ctx, client, b.Engine, o) },
		func(ctx context.Context) error { return b.Engine.Work(ctx, &engine.WorkOptions{Idle: time.Minute}) })
	return func() { end(); client.Close() }
}

// results produces results until the test ends, or stop is called.
func (b *bench) results() (stop func()) {
	stop = b.Run(func(ctx context.Context) error { return kafka.Results(ctx, b.client, b.Ledger, "results", "acme") })
	synctest.Wait() // it is subscribed
	return stop
}

// produce appends a record to a partition of orders.
func (b *bench) produce(partition int32, value string, header ...string) {
	b.T.Helper()
	r := &kgo.Record{Topic: "orders", Partition: partition, Value: []byte(value)}
	for i := 0; i < len(header); i += 2 {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: header[i], Value: []byte(header[i+1])})
	}
	if err := b.client.ProduceSync(b.T.Context(), r).FirstErr(); err != nil {
		b.T.Fatal(err)
	}
}

// committed waits until the group has committed everything of orders.
func (b *bench) committed(group string) {
	b.T.Helper()
	b.Eventually("everything is committed", func() bool {
		for p := range int32(2) {
			if info := b.cluster.PartitionInfo("orders", p); b.offset(group, p) < info.HighWatermark && info.HighWatermark > 0 {
				return false
			}
		}
		return true
	})
}

// offset is the committed offset of a partition, 0 if there is none.
func (b *bench) offset(group string, partition int32) int64 {
	info := b.cluster.GroupInfo(group)
	if info == nil {
		return 0
	}
	return info.Commits["orders"][partition].Offset
}

// read returns all n records of a topic with one partition.
func (b *bench) read(topic string, n int) (all []*kgo.Record) {
	b.T.Helper()
	b.Eventually(fmt.Sprintf("%d records of %s", n, topic), func() bool { return b.cluster.PartitionInfo(topic, 0).HighWatermark == int64(n) })
	c := b.connect(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer c.Close()
	for len(all) < n {
		all = append(all, c.PollFetches(b.T.Context()).Records()...)
	}
	return all
}

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// A lost response is read back, and the result is produced under the write's ID.
func TestLostAnswer(t *testing.T) {
	for _, settled := range []bool{false, true} {
		t.Run(fmt.Sprintf("settled %t", settled), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				if err := b.World.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1}); err != nil {
					t.Fatal(err)
				}
				b.run(group, kafka.Options{Settled: settled})
				b.results()
				b.produce(1, `{"order_id": "A-1", "amount_cents": 1999}`)
				rec := b.Status("A-1", ledger.Verified)
				b.committed(group)
				b.Once("A-1")
				if rec.Sends != 1 || rec.Step != "orders" || !strings.HasPrefix(rec.Workflow, "kafka:orders/1/0/") {
					t.Errorf("%d sends, workflow %q, step %q", rec.Sends, rec.Workflow, rec.Step)
				}
				if r := b.read("results", 1)[0]; string(r.Key) != string(rec.ID) || !strings.Contains(string(r.Value), `"verified"`) {
					t.Errorf("the result is %q, %s", r.Key, r.Value)
				}
			})
		})
	}
}

// A record that is delivered again, replayed by another group or produced again with its ID is the same
// write; so is one of another partition with that ID. One of a topic that is made again is another.
func TestRepeatedRecords(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		stop := b.run(group, kafka.Options{})
		b.produce(0, `{"order_id": "A-1", "amount_cents": 1999}`)
		b.produce(0, `{"order_id": "A-2", "amount_cents": 1999}`, "id", "order-2")
		b.produce(1, `{"order_id": "A-2", "amount_cents": 1999}`, "id", "order-2")
		b.committed(group)
		stop()
		stop = b.run("another", kafka.Options{})
		b.committed("another")
		b.Status("A-1", ledger.Verified)
		b.Status("A-2", ledger.Verified)
		b.Once("A-1", "A-2")
		if n := len(b.All()); n != 2 {
			t.Errorf("%d writes; want 2", n)
		}
		stop()
		time.Sleep(time.Second) // of virtual time: the topic is made again at another one
		if err := b.cluster.DeleteTopic("orders"); err != nil {
			t.Fatal(err)
		}
		if err := b.cluster.CreateTopic("orders", 2, nil); err != nil {
			t.Fatal(err)
		}
		b.client = b.connect(kgo.RecordPartitioner(kgo.ManualPartitioner()))
		b.run("third", kafka.Options{})
		b.produce(0, `{"order_id": "A-3", "amount_cents": 1999}`)
		b.Status("A-3", ledger.Verified)
		b.Once("A-1", "A-2", "A-3")
		b.read("dead", 0)
	})
}

// The Workflow of an intent, and the place and time of a record are names of different records, also
// where one has the text of the other.
func TestNames(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.run(group, kafka.Options{})
		b.produce(0, `{"order_id": "A-1"}`)
		b.produce(0, `{"order_id": "A-2"}`, "id", strings.TrimPrefix(b.Status("A-1", ledger.Verified).Workflow, "kafka:orders/"))
		b.Status("A-2", ledger.Verified)
		b.read("dead", 0)
	})
}

// A write that waits for a reviewer stops nothing by default, and its partition alone with Settled,
// where it keeps the order. The reviewer decides two days later, in virtual time.
func TestDecisionDaysLater(t *testing.T) {
	for _, settled := range []bool{false, true} {
		t.Run(fmt.Sprintf("settled %t", settled), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.run(group, kafka.Options{Settled: settled})
				b.produce(0, `{"order_id": "H-1", "amount_cents": 1}`, "held", "1")
				for i := range 50 {
					b.produce(0, fmt.Sprintf(`{"order_id": "A-%d", "amount_cents": 2}`, i))
				}
				b.produce(1, `{"order_id": "B-1", "amount_cents": 3}`)
				held := b.Status("H-1", ledger.StatusHeld)
				b.Status("B-1", ledger.Verified)
				time.Sleep(2 * 24 * time.Hour) // of virtual time
				want := 1 + 50
				if settled {
					want = 1
				}
				if n := len(b.World.Effects()); n != want || b.offset(group, 0) == 51 != !settled {
					t.Errorf("%d effects before the decision, offset %d; want %d", n, b.offset(group, 0), want)
				}
				b.Decide(held.ID, engine.WordApprove)
				b.committed(group)
				b.Status("A-49", ledger.Verified)
				b.Status("H-1", ledger.Verified)
				effects := b.World.Effects()
				if len(effects) != 52 {
					t.Fatalf("%d effects; want 52", len(effects))
				}
				for i := 2; settled && i < len(effects); i++ { // after B-1 and H-1
					if want := fmt.Sprintf("A-%d", i-2); effects[i].OrderID != want {
						t.Fatalf("effect %d is of %s; want %s", i, effects[i].OrderID, want)
					}
				}
			})
		})
	}
}

// A record that the ledger could not take is not committed, and comes again.
func TestLedgerUnavailable(t *testing.T) {
	for _, settled := range []bool{false, true} {
		t.Run(fmt.Sprintf("settled %t", settled), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.Down.Store(true)
				stop := b.run(group, kafka.Options{Settled: settled})
				b.produce(0, `{"order_id": "A-1", "amount_cents": 1999}`)
				lost := func(n int64) { b.Eventually("it was tried", func() bool { return b.Lost.Load() >= n }) }
				lost(3)
				stop()
				if n := b.offset(group, 0); n != 0 {
					t.Errorf("the offset is %d; want 0", n)
				}
				b.run(group, kafka.Options{Settled: settled})
				lost(b.Lost.Load() + 3)
				b.Down.Store(false)
				b.Status("A-1", ledger.Verified)
				b.committed(group)
				b.Once("A-1")
				b.read("dead", 0)
			})
		})
	}
}

// A commit that a rebalance refuses is repeated: no later record may come.
func TestCommitIsRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		refused := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.IllegalGeneration, Count: 2})
		b.run(group, kafka.Options{})
		b.produce(0, `{"order_id": "A-1", "amount_cents": 1999}`)
		b.committed(group)
		if n := refused.Hits(); n != 2 {
			t.Errorf("%d commits were refused; want 2", n)
		}
		b.Once("A-1")
	})
}

// What can never be a write becomes a dead letter whole, with its reason, and does not stop the others.
func TestDeadLetters(t *testing.T) {
	unstable := 0
	for name, c := range map[string]struct {
		value  string
		header []string
		intent func(*kgo.Record) (intent.WriteIntent, error)
		reason string
	}{
		"no JSON":         {value: "<order id=1>", reason: "invalid character"},
		"empty":           {reason: "unexpected end"},
		"no business key": {value: `{"amount_cents": 5}`, reason: "order_id"},
		"an unknown destination": {value: `{"order_id": "B-1"}`, reason: "shop", intent: func(r *kgo.Record) (intent.WriteIntent, error) {
			w, err := charge(r)
			w.Destination = "shop"
			return w, err
		}},
		"a name that changes": {value: `{"order_id": "B-2"}`, reason: "changed the identity", intent: func(r *kgo.Record) (intent.WriteIntent, error) {
			w, err := charge(r)
			unstable++
			w.Workflow = fmt.Sprint("run-", unstable)
			return w, err
		}},
		"another request under one ID": {value: `{"order_id": "A-1", "amount_cents": 5}`, header: []string{"id", "order-1"}, reason: "digest"},
		"a reason with a line end": {value: "x", header: []string{"trace", "t-1"}, reason: `a\nb`, intent: func(*kgo.Record) (intent.WriteIntent, error) {
			return intent.WriteIntent{}, errors.New("a\nb")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.run(group, kafka.Options{Intent: func(r *kgo.Record) (intent.WriteIntent, error) {
					if c.intent == nil || header(r, "good") != "" {
						return charge(r)
					}
					return c.intent(r)
				}})
				b.produce(0, `{"order_id": "A-1", "amount_cents": 1999}`, "id", "order-1", "good", "1")
				b.produce(0, c.value, c.header...)
				b.produce(0, `{"order_id": "A-3", "amount_cents": 1999}`, "good", "1")
				b.Status("A-1", ledger.Verified)
				b.Status("A-3", ledger.Verified)
				b.committed(group)
				letter := b.read("dead", 1)[0]
				if string(letter.Value) != c.value || !strings.Contains(header(letter, kafka.Reason), c.reason) || header(letter, kafka.From) != "orders/0/1" {
					t.Errorf("the letter is %q, %s", letter.Value, letter.Headers)
				}
				if len(c.header) > 0 && header(letter, c.header[0]) != c.header[1] {
					t.Errorf("a header is lost: %s", letter.Headers)
				}
				b.Once("A-1", "A-3")
				if n := len(b.World.Effects()); n != 2 {
					t.Errorf("%d effects; want 2", n)
				}
			})
		})
	}
}

// A client that would lose records is refused, and so are dead letters that are lost or come back.
func TestRefusedClients(t *testing.T) {
	letters := func(topic string) kafka.Options { return kafka.Options{Intent: charge, DeadLetters: topic} }
	for name, c := range map[string]struct {
		client  []kgo.Opt
		o       kafka.Options
		problem string
	}{
		"no intent":              {member(group), kafka.Options{DeadLetters: "dead"}, "Options.Intent"},
		"no group":               {[]kgo.Opt{kgo.ConsumeTopics("orders")}, letters("dead"), "ConsumerGroup"},
		"commits by itself":      {[]kgo.Opt{kgo.ConsumerGroup(group), kgo.ConsumeTopics("orders")}, letters("dead"), "DisableAutoCommit"},
		"aborted transactions":   {append(member(group), kgo.FetchIsolationLevel(kgo.ReadUncommitted())), letters("dead"), "ReadCommitted"},
		"unsure letters":         {append(member(group), kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()), letters("dead"), "AllISRAcks"},
		"rebalances are blocked": {append(member(group), kgo.BlockRebalanceOnPoll()), letters("dead"), "BlockRebalanceOnPoll"},
		"any topic":              {append(member(group), kgo.ConsumeRegex()), letters("dead"), "ConsumeRegex"},
		"transactions":           {append(member(group), kgo.TransactionalID("writes")), letters("dead"), "TransactionalID"},
		"no dead letters":        {member(group), letters(""), "DeadLetters"},
		"dead letters are lost":  {member(group), letters("lost"), "DeadLetters"},
		"dead letters come back": {member(group), letters("orders"), "DeadLetters"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := kafka.Consume(ctx, b.connect(c.client...), b.Engine, c.o); err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// A record that is as large as a record can be does not stop its partition: its letter names its place.
func TestLargeRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.client = b.connect(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(2<<20))
		b.run(group, kafka.Options{})
		b.produce(0, "<"+strings.Repeat("x", 1<<20), kafka.From, "orders/1/7")
		b.produce(0, "<", kafka.From, "orders/1/7") // a letter that was produced again
		b.committed(group)
		for n, letter := range b.read("dead", 2) {
			if place := header(letter, kafka.From); place != fmt.Sprintf("orders/0/%d", n) || !strings.Contains(header(letter, kafka.Reason), "invalid character") {
				t.Errorf("letter %d is of %s: %s", n, place, header(letter, kafka.Reason))
			}
		}
	})
}

// A client that is closed ends Consume, also while a write waits for a reviewer.
func TestClientClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		client := b.connect(member(group)...)
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			ended <- kafka.Consume(ctx, client, b.Engine, kafka.Options{Intent: charge, DeadLetters: "dead", Settled: true})
		}()
		b.produce(0, `{"order_id": "H-1", "amount_cents": 1}`, "held", "1")
		b.Status("H-1", ledger.StatusHeld)
		client.Close()
		select {
		case err := <-ended:
			if !errors.Is(err, kgo.ErrClientClosed) {
				t.Error(err)
			}
		case <-time.After(time.Hour):
			t.Error("it did not end")
		}
	})
}

// Results are of named tenants.
func TestResultsOfNoTenant(t *testing.T) {
	if err := kafka.Results(t.Context(), nil, ledger.NewMemory(), "results"); err == nil {
		t.Error("it produced the results of all tenants")
	}
}
