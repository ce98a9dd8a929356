package nats_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/readback-go/readback/adapters/nats"
	"github.com/readback-go/readback/internal/adaptertest"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
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
	settled := os.Getenv("NATS_SETTLED") != ""
	from, err := consumerOf(ctx, js, settled)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	go func() {
		ended <- nats.Consume(ctx, haltingStream{js, w}, halting{from, w}, w.Engine, nats.Options{Intent: charge, DeadLetters: "dead.orders", Settled: settled})
	}()
	go func() { ended <- w.Engine.Work(ctx, nil) }()
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("it ended early: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
		if !done(ctx, js) {
			continue
		}
		all, err := w.Ledger.List(ctx, ledger.Filter{Tenant: "acme"}) // what is acknowledged is in it
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(r ledger.Record) bool { return r.State != ledger.Settled }) {
			return nil
		}
	}
}

// The worker, or the server of NATS, is killed at each call of the worker: of two orders and a bad
// message between them, each order is made once, and the bad message becomes a dead letter.
func TestKilled(t *testing.T) {
	need.Long(t)
	for _, settled := range []string{"", "1"} {
		for _, who := range []string{"worker", "server"} {
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
	dir := t.TempDir()
	server, at := s.Serve(t, "server", "NATS_DIR="+dir, "NATS_PORT=-1")
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
	if _, err := consumerOf(t.Context(), js, settled != ""); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{`{"order_id": "A-1", "amount_cents": 1999}`, `no order`, `{"order_id": "A-2", "amount_cents": 1999}`} {
		if _, err := js.Publish(t.Context(), "orders.new", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"NATS_URL=" + at, "NATS_SETTLED=" + settled}
	point := s.Run(t, "worker", env, func(n int, point string) bool {
		points = n
		if n != nth || who == "worker" {
			return n == nth
		}
		t.Log("the server is killed", point)
		server.Kill()
		server, _ = s.Serve(t, "server", "NATS_DIR="+dir, "NATS_PORT="+where.Port())
		return false
	})
	if point != "" {
		t.Log("the worker was killed", point)
		s.Run(t, "worker", env, nil)
	}
	if sum := s.World.Summary("A-1", "A-2"); sum.Duplicates != 0 || len(sum.Lost) != 0 {
		t.Errorf("%+v", sum)
	}
	dead, err := js.Stream(t.Context(), "DEAD")
	if err != nil {
		t.Fatal(err)
	}
	letter, err := dead.GetMsg(t.Context(), 1)
	if err != nil || string(letter.Data) != "no order" || !strings.Contains(letter.Header.Get(nats.Reason), "invalid character") {
		t.Errorf("the dead letter is %+v, %v", letter, err)
	}
	return points
}
