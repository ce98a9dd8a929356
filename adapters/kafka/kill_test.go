package kafka_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/readback-go/readback/adapters/kafka"
	"github.com/readback-go/readback/internal/adaptertest"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
)

// broker is the cluster as a process of its own, which keeps its files.
func broker(ctx context.Context) error {
	var port int
	if _, err := fmt.Sscan(os.Getenv("KAFKA_PORT"), &port); err != nil {
		return err
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.DataDir(os.Getenv("KAFKA_DIR")), kfake.SyncWrites(), kfake.SeedTopics(1, "orders", "dead"))
	if err != nil {
		return err
	}
	fmt.Println(c.ListenAddrs()[0])
	<-ctx.Done()
	return nil
}

// halts halts the worker before and after each request that produces or commits.
type halts struct{ w *adaptertest.Worker }

func changes(key int16) bool {
	return key == int16(kmsg.Produce) || key == int16(kmsg.OffsetCommit)
}

// OnBrokerWrite implements [kgo.HookBrokerWrite]: the request is on its way.
func (h halts) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if changes(key) {
		h.w.Halt("after request " + kmsg.NameForKey(key))
	}
}

// OnBrokerRead implements [kgo.HookBrokerRead]: the answer is there.
func (h halts) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if changes(key) {
		h.w.Halt("after answer " + kmsg.NameForKey(key))
	}
}

// worker consumes until everything is committed and all writes are settled.
func worker(ctx context.Context) error {
	w, err := adaptertest.NewWorker(ctx)
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(append(member(group), kgo.SeedBrokers(os.Getenv("KAFKA_AT")), kgo.WithHooks(halts{w}), kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(200*time.Millisecond), kgo.MetadataMinAge(50*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		kgo.RequestRetries(1000), kgo.UnknownTopicRetries(1000))...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	go func() {
		ended <- kafka.Consume(ctx, client, w.Engine, kafka.Options{Intent: charge, DeadLetters: "dead", Settled: os.Getenv("KAFKA_SETTLED") != ""})
	}()
	go func() { ended <- w.Engine.Work(ctx, nil) }()
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("it ended early: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
		if at := client.CommittedOffsets()["orders"][0]; at.Offset < 3 {
			continue
		}
		all, err := w.Ledger.List(ctx, ledger.Filter{Tenant: "acme"}) // what is committed is in it
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(r ledger.Record) bool { return r.State != ledger.Settled }) {
			return nil
		}
	}
}

// The worker, or the broker, is killed at each call of the worker: of two orders and a bad record
// between them, each order is made once, and the bad record becomes a dead letter.
func TestKilled(t *testing.T) {
	need.Long(t)
	for _, settled := range []string{"", "1"} {
		for _, who := range []string{"worker", "broker"} {
			t.Run(fmt.Sprintf("settled %t, the %s is killed", settled != "", who), func(t *testing.T) {
				points := 0
				t.Run("undisturbed", func(t *testing.T) { points = killed(t, settled, "", 0) })
				for n := 1; n <= points; n += need.OneIn(3) {
					t.Run(fmt.Sprint("point ", n), func(t *testing.T) { t.Parallel(); killed(t, settled, who, n) })
				}
			})
		}
	}
}

// killed runs one scene, in which one is killed at the nth point. It returns the number of points.
func killed(t *testing.T, settled, who string, nth int) (points int) {
	s := adaptertest.NewScene(t)
	dir := filepath.Join(t.TempDir(), "kafka")
	server, at := s.Serve(t, "broker", "KAFKA_DIR="+dir, "KAFKA_PORT=0")
	client, err := kgo.NewClient(kgo.SeedBrokers(at), kgo.ConsumeTopics("dead"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, value := range []string{`{"order_id": "A-1", "amount_cents": 1999}`, `no order`, `{"order_id": "A-2", "amount_cents": 1999}`} {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"KAFKA_AT=" + at, "KAFKA_SETTLED=" + settled}
	point := s.Run(t, "worker", env, func(n int, point string) bool {
		points = n
		if n != nth || who == "worker" {
			return n == nth
		}
		t.Log("the broker is killed", point)
		server.Kill()
		server, _ = s.Serve(t, "broker", "KAFKA_DIR="+dir, "KAFKA_PORT="+at[strings.LastIndex(at, ":")+1:])
		return false
	})
	if point != "" {
		t.Log("the worker was killed", point)
		s.Run(t, "worker", env, nil)
	}
	if sum := s.World.Summary("A-1", "A-2"); sum.Duplicates != 0 || len(sum.Lost) != 0 {
		t.Errorf("%+v", sum)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var letters []*kgo.Record
	for len(letters) == 0 && ctx.Err() == nil {
		letters = client.PollFetches(ctx).Records()
	}
	if len(letters) == 0 || string(letters[0].Value) != "no order" || !strings.Contains(header(letters[0], kafka.Reason), "invalid character") {
		t.Errorf("the dead letters are %+v", letters)
	}
	return points
}
