package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/messages"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/ledger"
)

// Reason is the header of a dead letter that says why the record cannot be a write. The header
// [From] says which record it was, as topic/partition/offset.
const (
	Reason = "Readback-Reason"
	From   = "Readback-From"
)

const (
	// commitTime bounds one commit of an offset.
	commitTime = 10 * time.Second
	// readCommitted is [kgo.ReadCommitted], as [kgo.Client.OptValue] returns it.
	readCommitted = int8(1)
)

// Options configures Consume.
type Options struct {
	// Intent returns the write that a record requests. It must return the same for each delivery of
	// one record. Where it sets a Workflow, that is the ID of the record: that of a header, or the
	// record's key if no two records share one. Step is the topic unless it is set. An error says
	// that the record can never be a write. Required.
	Intent func(*kgo.Record) (intent.WriteIntent, error)
	// DeadLetters is the topic for records that can never be a write. Required.
	DeadLetters string
	// Settled commits a record when its write has ended, and begins with none of its partition
	// before: for partitions that need order. A write that waits for a reviewer then stops its
	// partition. Default false: a record is committed when its write is in the ledger, where
	// [engine.Engine.Work] makes it.
	Settled bool
	// Logger receives what an operator should see. Default: nothing.
	Logger *slog.Logger
}

// Consume makes a write of each record that a client of a consumer group polls until ctx ends, and
// then returns nil. It commits what it has done. The client must have the options
// [kgo.DisableAutoCommit] and [kgo.FetchIsolationLevel] with [kgo.ReadCommitted].
func Consume(ctx context.Context, client *kgo.Client, eng *engine.Engine, o Options) error {
	if err := check(ctx, client, o); err != nil {
		return err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &consumer{Options: o, client: client, engine: eng}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a client that is closed takes no commit any more
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if fetches.IsClientClosed() {
			return kgo.ErrClientClosed
		}
		for _, e := range fetches.Errors() {
			o.Logger.Error("a partition could not be read", "topic", e.Topic, "partition", e.Partition, "error", e.Err)
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if len(p.Records) == 0 {
				return
			}
			this := map[string][]int32{p.Topic: {p.Partition}}
			client.PauseFetchPartitions(this) // until these are done
			running.Go(func() {
				defer client.ResumeFetchPartitions(this)
				c.partition(ctx, p.Records)
			})
		})
	}
}

// check refuses a client that loses records, or reads what was never committed.
func check(ctx context.Context, client *kgo.Client, o Options) error {
	var wrong []error
	refuse := func(is bool, format string, a ...any) {
		if is {
			wrong = append(wrong, fmt.Errorf(format, a...))
		}
	}
	refuse(o.Intent == nil, "Options.Intent is missing")
	refuse(client.OptValue(kgo.ConsumerGroup) == "", "the client has no kgo.ConsumerGroup; its place would be lost")
	refuse(client.OptValue(kgo.DisableAutoCommit) != true, "kgo.DisableAutoCommit is missing, or a record is committed before it is recorded")
	refuse(client.OptValue(kgo.FetchIsolationLevel) != readCommitted, "kgo.FetchIsolationLevel is not kgo.ReadCommitted, or records of aborted transactions are writes")
	refuse(client.OptValue(kgo.BlockRebalanceOnPoll) == true, "kgo.BlockRebalanceOnPoll is set, and no rebalance would end")
	refuse(client.OptValue(kgo.ConsumeRegex) == true, "kgo.ConsumeRegex is set; name the topics, or dead letters can be consumed")
	refuse(client.OptValue(kgo.TransactionalID) != "", "kgo.TransactionalID is set; a dead letter is produced outside of transactions")
	refuse(client.OptValue(kgo.RequiredAcks) != kgo.AllISRAcks(), "kgo.RequiredAcks is not kgo.AllISRAcks, or a dead letter can be lost")
	refuse(slices.Contains(client.GetConsumeTopics(), o.DeadLetters), "Options.DeadLetters is %q, which the client consumes; want another topic", o.DeadLetters)
	if len(wrong) == 0 {
		err := exists(ctx, client, o.DeadLetters)
		refuse(err != nil, "Options.DeadLetters is %q: %w", o.DeadLetters, err)
	}
	return errors.Join(wrong...)
}

// exists asks for a topic without making it.
func exists(ctx context.Context, client *kgo.Client, topic string) error {
	r := kmsg.NewPtrMetadataRequest()
	r.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
	answer, err := r.RequestWith(ctx, client)
	if err == nil && len(answer.Topics) == 1 {
		err = kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	}
	return err
}

type consumer struct {
	Options
	client *kgo.Client
	engine *engine.Engine
}

// partition makes the writes of records of one partition, one after another, and commits those that
// are done: always a prefix.
func (c *consumer) partition(ctx context.Context, records []*kgo.Record) {
	var done *kgo.Record
	commit := func() { // again after a rebalance: else the offset stays behind until the next record
		for attempt := 0; done != nil; attempt++ {
			err := c.commit(ctx, done)
			if err != nil {
				c.Logger.Warn("an offset was not committed", "record", place(done), "error", err)
				if ctx.Err() == nil {
					pause.For(ctx, messages.Pause(attempt))
					continue
				}
			}
			done = nil // what is not committed comes again, and is the same write
		}
	}
	defer commit()
	for _, r := range records {
		for attempt := 0; ; attempt++ {
			if ctx.Err() != nil {
				return
			}
			wait := c.record(ctx, r, attempt)
			if wait == 0 {
				break
			}
			commit()
			pause.For(ctx, wait)
		}
		done = r
		if c.Settled {
			commit()
		}
	}
}

// commit commits the offset after a record, also when the consumer ends.
func (c *consumer) commit(ctx context.Context, r *kgo.Record) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	return c.client.CommitRecords(ctx, r)
}

// record makes one attempt at the write of a record, and returns the pause before the next, 0 if there
// is none.
func (c *consumer) record(ctx context.Context, r *kgo.Record, failed int) (wait time.Duration) {
	return messages.Message{
		Intent: func() (intent.WriteIntent, error) { return c.Intent(r) },
		Broker: "kafka", Source: r.Topic, Step: r.Topic,
		// A topic that is made again begins with offset 0, and at another time.
		ID:     []string{strconv.Itoa(int(r.Partition)), strconv.FormatInt(r.Offset, 10), r.Timestamp.UTC().Format(time.RFC3339Nano)},
		Reject: func(ctx context.Context, reason string) error { return c.reject(ctx, r, reason) },
		Logger: c.Logger.With("record", place(r)),
	}.Attempt(ctx, c.engine, c.Settled, failed)
}

// reject produces a record as a dead letter. Of one that is too large with two headers more, the letter
// has these alone: it must not stop its partition, and its own topic has it.
func (c *consumer) reject(ctx context.Context, r *kgo.Record, reason string) error {
	ours := []kgo.RecordHeader{{Key: Reason, Value: []byte(reason)}, {Key: From, Value: []byte(place(r))}}
	theirs := slices.DeleteFunc(slices.Clone(r.Headers), func(h kgo.RecordHeader) bool { return h.Key == Reason || h.Key == From })
	err := c.client.ProduceSync(ctx, &kgo.Record{Topic: c.DeadLetters, Key: r.Key, Value: r.Value, Headers: append(theirs, ours...)}).FirstErr()
	if errors.Is(err, kerr.MessageTooLarge) {
		err = c.client.ProduceSync(ctx, &kgo.Record{Topic: c.DeadLetters, Headers: ours}).FirstErr()
	}
	return err
}

func place(r *kgo.Record) string { return fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset) }

// Results produces what became of the writes of some tenants to a topic, until ctx ends: the JSON of
// webhooks, with the write's ID as the record's key. Each is produced at least once. It may run in
// several processes.
func Results(ctx context.Context, client *kgo.Client, l ledger.Ledger, topic string, tenants ...string) error {
	publish := webhooks.Publisher(func(ctx context.Context, m webhooks.Message) error {
		return client.ProduceSync(ctx, &kgo.Record{Topic: topic, Key: []byte(m.Write), Value: m.Body}).FirstErr()
	})
	return webhooks.Publish(ctx, l, publish, "kafka/"+topic, tenants...)
}
