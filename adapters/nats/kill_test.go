package nats_test

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/readback-go/readback/adapters/nats"
	"github.com/readback-go/readback/internal/adaptertest"
)

// halting is a consumer whose messages halt the worker around each acknowledgement.
type halting struct {
	jetstream.Consumer
	w *adaptertest.Worker
}

func (h halting) Consume(handle jetstream.MessageHandler, o ...jetstream.PullConsumeOpt) (jetstream.ConsumeContext, error) {
	return h.Consumer.Consume(func(m jetstream.Msg) { handle(haltingMsg{m, h.w}) }, o...)
}

type haltingMsg struct {
	jetstream.Msg
	w *adaptertest.Worker
}

func (m haltingMsg) Ack() (err error) {
	m.w.Around("ack", func() { err = m.Msg.DoubleAck(context.Background()) })
	return err
}

func (m haltingMsg) TermWithReason(reason string) (err error) {
	m.w.Around("term", func() { err = m.Msg.TermWithReason(reason) })
	return err
}

type haltingStream struct {
	jetstream.JetStream
	w *adaptertest.Worker
}

func (h haltingStream) PublishMsg(ctx context.Context, m *natsgo.Msg, o ...jetstream.PublishOpt) (ack *jetstream.PubAck, err error) {
	h.w.Around("publish "+m.Subject, func() { ack, err = h.JetStream.PublishMsg(ctx, m, o...) })
	return ack, err
}

func connect(at string) (jetstream.JetStream, *natsgo.Conn, error) {
	conn, err := natsgo.Connect(at, natsgo.MaxReconnects(-1), natsgo.ReconnectWait(20*time.Millisecond), natsgo.ReconnectJitter(0, 0))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(conn)
	return js, conn, err
}

// worker consumes until all messages are acknowledged and all writes are settled.
func worker(ctx context.Context) error {
	w, err := adaptertest.NewWorker(ctx)
	if err != nil {
		return err
	}
	js, conn, err := connect(os.Getenv("NATS_URL"))
	if err != nil {
		return err
	}
	defer conn.Close()
	from, err := consumerOf(ctx, js, w.Settled)
	if err != nil {
		return err
	}
	done := func() (bool, error) {
		if !done(ctx, js) {
			return false, nil
		}
		return w.AllSettled(ctx) // what is acknowledged is in the ledger
	}
	return w.Work(ctx, done, func(ctx context.Context) error {
		return nats.Consume(ctx, haltingStream{js, w}, halting{from, w}, w.Engine, nats.Options{Intent: charge, DeadLetters: "dead.orders", Settled: w.Settled})
	})
}

// The worker, or the server of NATS, is killed at each call of the worker: of two orders and a bad
// message between them, each order is made once, and the bad message becomes a dead letter.
func TestKilled(t *testing.T) { adaptertest.Killed(t, killed) }

func killed(t *testing.T, k *adaptertest.Kill) {
	dir := t.TempDir()
	server, at := k.Serve(t, "server", "NATS_DIR="+dir, "NATS_PORT=-1")
	where, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	js, conn, err := connect(at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := streams(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	if _, err := consumerOf(t.Context(), js, k.Settled); err != nil {
		t.Fatal(err)
	}
	for _, data := range adaptertest.Bodies {
		if _, err := js.Publish(t.Context(), "orders.new", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	k.Work(t, func() {
		server.Kill()
		server, _ = k.Serve(t, "server", "NATS_DIR="+dir, "NATS_PORT="+where.Port())
	}, "NATS_URL="+at)
	dead, err := js.Stream(t.Context(), "DEAD")
	if err != nil {
		t.Fatal(err)
	}
	letter, err := dead.GetMsg(t.Context(), 1)
	if err != nil || string(letter.Data) != "no order" || !strings.Contains(letter.Header.Get(nats.Reason), "invalid character") {
		t.Errorf("the dead letter is %+v, %v", letter, err)
	}
}
