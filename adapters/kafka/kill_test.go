package kafka_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/readback-go/readback/adapters/kafka"
	"github.com/readback-go/readback/internal/adaptertest"
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
	done := func() (bool, error) {
		if client.CommittedOffsets()["orders"][0].Offset < int64(len(adaptertest.Bodies)) {
			return false, nil
		}
		return w.AllSettled(ctx) // what is committed is in the ledger
	}
	return w.Work(ctx, done, func(ctx context.Context) error {
		return kafka.Consume(ctx, client, w.Engine, kafka.Options{Intent: charge, DeadLetters: "dead", Settled: w.Settled})
	})
}

// The worker, or the broker, is killed at each call of the worker: of two orders and a bad record
// between them, each order is made once, and the bad record becomes a dead letter.
func TestKilled(t *testing.T) { adaptertest.Killed(t, killed) }

func killed(t *testing.T, k *adaptertest.Kill) {
	dir := filepath.Join(t.TempDir(), "kafka")
	server, at := k.Serve(t, "broker", "KAFKA_DIR="+dir, "KAFKA_PORT=0")
	client, err := kgo.NewClient(kgo.SeedBrokers(at), kgo.ConsumeTopics("dead"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, value := range adaptertest.Bodies {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	k.Work(t, func() {
		server.Kill()
		server, _ = k.Serve(t, "broker", "KAFKA_DIR="+dir, "KAFKA_PORT="+at[strings.LastIndex(at, ":")+1:])
	}, "KAFKA_AT="+at)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var letters []*kgo.Record
	for len(letters) == 0 && ctx.Err() == nil {
		letters = client.PollFetches(ctx).Records()
	}
	if len(letters) == 0 || string(letters[0].Value) != "no order" || !strings.Contains(header(letters[0], kafka.Reason), "invalid character") {
		t.Errorf("the dead letters are %+v", letters)
	}
}
