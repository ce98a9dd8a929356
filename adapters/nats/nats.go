package nats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/messages"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/ledger"
)

// Reason is the header of a dead letter that says why the message cannot be a write. The headers
// [FromStream] and [FromSequence] say which message it was, [FromID] has its Nats-Msg-Id.
const (
	Reason       = "Readback-Reason"
	FromStream   = "Readback-Stream"
	FromSequence = "Readback-Sequence"
	FromID       = "Readback-Msg-Id"
)

// Options configures Consume.
type Options struct {
	// Intent returns the write that a message requests. It must return the same for each delivery
	// of one message. Where it sets a Workflow, that is the ID of the message. Step is the subject
	// unless it is set. An error says that the message can never be a write. Required.
	Intent func(jetstream.Msg) (intent.WriteIntent, error)
	// DeadLetters is the subject for messages that can never be a write. A stream other than the
	// consumer's must have it. Required.
	DeadLetters string
	// Settled acknowledges a message when its write has ended, and delivers no other meanwhile: for
	// consumers that need order. A write that waits for a reviewer then stops the consumer. Default
	// false: a message is acknowledged when its write is in the ledger, where [engine.Engine.Work]
	// makes it.
	Settled bool
	// Logger receives what an operator should see. Default: nothing.
	Logger *slog.Logger
}

// Consume makes a write of each message of a consumer until ctx ends, and then returns nil. The
// consumer must deliver a message until it is acknowledged: MaxDeliver -1, and AckPolicy explicit.
// With Settled its MaxAckPending must be 1.
func Consume(ctx context.Context, js jetstream.JetStream, from jetstream.Consumer, eng *engine.Engine, o Options) error {
	info, err := from.Info(ctx)
	if err != nil {
		return fmt.Errorf("consumer %q of stream %q: %w", from.CachedInfo().Name, from.CachedInfo().Stream, err)
	}
	if err := check(ctx, js, info, o); err != nil {
		return err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &consumer{Options: o, js: js, engine: eng, ackWait: info.Config.AckWait}
	var last atomic.Pointer[error]
	running, err := from.Consume(func(m jetstream.Msg) { c.handle(ctx, m) }, jetstream.ConsumeErrHandler(func(running jetstream.ConsumeContext, err error) {
		last.Store(&err)
		o.Logger.Warn("a consumer of JetStream failed", "stream", info.Stream, "consumer", info.Name, "error", err)
		// The server's message that it removed the consumer can be lost: then heartbeats are missing for ever.
		if _, err := from.Info(ctx); errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
			last.Store(&err)
			running.Stop()
		}
	}))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, running.Stop)()
	<-running.Closed()
	if ctx.Err() != nil {
		return nil
	}
	why := errors.New("it ended")
	if err := last.Load(); err != nil { // that of a removed consumer
		why = *err
	}
	return fmt.Errorf("consumer %q of stream %q: %w", info.Name, info.Stream, why)
}

// check refuses a consumer that loses messages, or repeats one for ever.
func check(ctx context.Context, js jetstream.JetStream, info *jetstream.ConsumerInfo, o Options) error {
	var wrong []error
	refuse := func(is bool, format string, a ...any) {
		if is {
			wrong = append(wrong, fmt.Errorf(format, a...))
		}
	}
	c := info.Config
	refuse(o.Intent == nil, "Options.Intent is missing")
	refuse(c.AckPolicy != jetstream.AckExplicitPolicy, "AckPolicy is %s; want explicit, or a message is acknowledged before it is recorded", c.AckPolicy)
	refuse(c.Durable == "", "Durable is not set; the server removes the consumer, and its place would be lost")
	refuse(c.MaxDeliver != -1, "MaxDeliver is %d; want -1, or a message is lost while the ledger is unavailable", c.MaxDeliver)
	refuse(c.HeadersOnly, "HeadersOnly is set; want messages with their data")
	refuse(o.Settled && c.MaxAckPending != 1, "MaxAckPending is %d; want 1 with Settled, or messages overtake one that waits", c.MaxAckPending)
	stream, err := js.StreamNameBySubject(ctx, o.DeadLetters)
	refuse(strings.ContainsAny(o.DeadLetters, "*>"), "Options.DeadLetters is %q; want one subject", o.DeadLetters)
	refuse(err != nil, "Options.DeadLetters is %q, which no stream has: %w", o.DeadLetters, err)
	refuse(stream == info.Stream, "Options.DeadLetters is %q, a subject of the consumer's own stream %q; want another stream", o.DeadLetters, stream)
	if err == nil {
		dead, err := js.Stream(ctx, stream)
		refuse(err != nil, "the stream %q of Options.DeadLetters: %w", stream, err)
		refuse(err == nil && dead.CachedInfo().Config.Retention == jetstream.InterestPolicy, "the stream %q of Options.DeadLetters drops what no consumer waits for; want another retention than interest", stream)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("consumer %q of stream %q: %w", info.Name, info.Stream, errors.Join(wrong...))
	}
	return nil
}

type consumer struct {
	Options
	js      jetstream.JetStream
	engine  *engine.Engine
	ackWait time.Duration
}

// handle makes the write of one delivery. An acknowledgement that is lost brings the message again,
// and it is the same write.
func (c *consumer) handle(ctx context.Context, m jetstream.Msg) {
	meta, err := m.Metadata()
	if err != nil {
		c.Logger.Error("a message is not of JetStream", "subject", m.Subject(), "error", err)
		return
	}
	log := c.Logger.With("stream", meta.Stream, "sequence", meta.Sequence.Stream)
	id := []string{strconv.FormatUint(meta.Sequence.Stream, 10), meta.Timestamp.UTC().Format(time.RFC3339Nano)} // a stream that is made again begins with sequence 1, and at another time
	if named := m.Headers().Get(jetstream.MsgIDHeader); named != "" {
		id = []string{jetstream.MsgIDHeader, named}
	}
	if c.Settled {
		working, cancel := context.WithCancel(ctx)
		defer cancel()
		go c.inProgress(working, m)
	}
	end := m.Ack
	wait := messages.Message{
		Intent: func() (intent.WriteIntent, error) { return c.Intent(m) },
		Broker: "nats", Source: meta.Stream, ID: id, Step: m.Subject(),
		Reject: func(ctx context.Context, reason string) error {
			end = func() error { return m.TermWithReason(reason) }
			return c.reject(ctx, m, meta, reason)
		},
		Logger: log,
	}.Attempt(ctx, c.engine, c.Settled, int(meta.NumDelivered)-1)
	if wait > 0 {
		end = func() error { return m.NakWithDelay(wait) }
	}
	if err := end(); err != nil {
		log.Warn("an acknowledgement was not sent; the message is delivered again", "error", err)
	}
}

// inProgress asks the server not to deliver a message again until ctx ends.
func (c *consumer) inProgress(ctx context.Context, m jetstream.Msg) {
	tick := time.NewTicker(max(c.ackWait/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = m.InProgress()
		}
	}
}

// reject publishes a message as a dead letter. Of one that is too large with our headers more, the
// letter has these alone: else it comes again for ever.
func (c *consumer) reject(ctx context.Context, m jetstream.Msg, meta *jetstream.MsgMetadata, reason string) error {
	sequence := strconv.FormatUint(meta.Sequence.Stream, 10)
	ours := nats.Header{Reason: {reason}, FromStream: {meta.Stream}, FromSequence: {sequence}}
	dead := &nats.Msg{Subject: c.DeadLetters, Data: m.Data(), Header: nats.Header{}}
	for name, values := range m.Headers() {
		if !strings.HasPrefix(strings.ToLower(name), "nats-") { // these are instructions to the server
			dead.Header[name] = values
		}
	}
	maps.Copy(dead.Header, ours)
	if id := m.Headers().Get(jetstream.MsgIDHeader); id != "" {
		dead.Header.Set(FromID, id)
	}
	copies := jetstream.WithMsgID(c.DeadLetters + "/" + meta.Stream + "/" + sequence + "/" + meta.Timestamp.UTC().Format(time.RFC3339Nano))
	_, err := c.js.PublishMsg(ctx, dead, copies)
	var refused *jetstream.APIError
	if errors.Is(err, nats.ErrMaxPayload) || errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum {
		_, err = c.js.PublishMsg(ctx, &nats.Msg{Subject: c.DeadLetters, Header: ours}, copies)
	}
	return err
}

// Results publishes what became of the writes of some tenants to a subject, until ctx ends: the
// JSON of webhooks, with the write's ID in the header Readback-Write. Each is published at least
// once, with one Nats-Msg-Id for all its copies. It may run in several processes.
func Results(ctx context.Context, js jetstream.JetStream, l ledger.Ledger, subject string, tenants ...string) error {
	publish := webhooks.Publisher(func(ctx context.Context, r webhooks.Message) error {
		m := &nats.Msg{Subject: subject, Data: r.Body, Header: nats.Header{"Readback-Write": {string(r.Write)}}}
		_, err := js.PublishMsg(ctx, m, jetstream.WithMsgID(subject+"/"+r.ID))
		return err
	})
	return webhooks.Publish(ctx, l, publish, "nats/"+subject, tenants...)
}
