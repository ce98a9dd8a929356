package v1

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/ledger"
)

// pipes is a listener whose connections are pipes, so that a server with all its
// time bounds lives in a bubble.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// served serves the API as in production, and is a client of it.
func (b *bench) served() *http.Client {
	p := newPipes()
	server := httpapi.Server(b.api, nil)
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(p) })
	transport := &http.Transport{DialContext: p.dial}
	b.t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		wg.Wait()
	})
	return &http.Client{Transport: transport}
}

// listener reads a stream.
type listener struct {
	t      *testing.T
	body   *bufio.Reader
	close  func()
	events chan event // closed at the end, where it is read all the time
	err    error      // why it ended
}

// listening reads all the time, as a reader should.
func (l *listener) listening() *listener {
	l.events = make(chan event, 1000)
	go func() {
		defer close(l.events)
		for {
			s, err := l.next()
			if err != nil {
				l.err = err
				return
			}
			l.events <- s
		}
	}()
	return l
}

// event is one event.
type event struct {
	ID, Event string
	Data      []byte
}

func (b *bench) listenSlowly(client *http.Client, who, target string, headers ...string) *listener {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", "http://readback"+target, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+who)
	r.Header.Set("Accept", "text/event-stream")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	answer, err := client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != streamType {
		b.t.Fatalf("%s %v", answer.Status, answer.Header)
	}
	agreement.Lock()
	agreement.seen["GET /v1/events 200"] = true
	agreement.Unlock()
	l := &listener{t: b.t, body: bufio.NewReader(answer.Body), close: func() { cancel(); _ = answer.Body.Close() }}
	b.t.Cleanup(l.close)
	return l
}

// listen reads a stream all the time.
func (b *bench) listen(client *http.Client, who, target string, headers ...string) *listener {
	b.t.Helper()
	return b.listenSlowly(client, who, target, headers...).listening()
}

// next reads the next event; it skips comments, unless they are requested.
func (l *listener) next() (event, error) {
	var s event
	here := false
	for {
		line, err := l.body.ReadString('\n')
		if err != nil {
			return s, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			s.ID = value
		case "event":
			s.Event = value
		case "data":
			s.Data = []byte(value)
		case "":
			if s.Event != "" {
				return s, nil
			}
			here = here || value == "here"
		}
		if line == "\n" && here {
			s.Event = "heartbeat"
			return s, nil
		}
	}
}

// outcome reads the next outcome; it must be as documented.
func (l *listener) outcome() (event, Sent) {
	l.t.Helper()
	for {
		s, ok := <-l.events
		if !ok {
			l.t.Fatal(l.err)
		}
		if s.Event == "heartbeat" {
			continue
		}
		if s.Event != "outcome" || s.ID == "" {
			l.t.Fatalf("event %s %s", s.Event, s.Data)
		}
		validate(l.t, compiled(l.t, "components", "schemas", "StreamEvent"), s.Data)
		var outcome Sent
		if err := json.Unmarshal(s.Data, &outcome); err != nil {
			l.t.Fatal(err)
		}
		return s, outcome
	}
}

// The stream sends changes from now on, outlives all time bounds of the server, and
// continues where it was cut.
func TestStreamSendsOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		client := b.served()
		before := b.submit(order("A-0"))
		l := b.listen(client, agent, "/v1/events")
		time.Sleep(10 * time.Minute) // of the bubble: longer than any bound of the server
		one := b.submit(order("A-1"))
		first, outcome := l.outcome()
		if outcome.Write != one.ID || outcome.Happened != ledger.EvSettled || outcome.Outcome.Status != ledger.Verified {
			t.Errorf("%+v", outcome)
		}
		l.close()
		two := b.submit(order("A-2", held))
		if _, outcome := b.listen(client, agent, "/v1/events", "Last-Event-ID: "+first.ID).outcome(); outcome.Write != two.ID || outcome.Happened != ledger.EvHeld {
			t.Errorf("%+v", outcome)
		}
		if _, outcome := b.listen(client, agent, "/v1/events?after=start").outcome(); outcome.Write != before.ID {
			t.Errorf("%+v", outcome)
		}
		if _, outcome := b.listen(client, agent, "/v1/events?after=start&write="+string(two.ID)).outcome(); outcome.Write != two.ID {
			t.Errorf("%+v", outcome)
		}
	})
}

func TestStreamOfOneWorkflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		client := b.served()
		b.submit(order("A-1"))
		other := order("A-2")
		other.Workflow = "run-2"
		out := b.submit(other)
		if _, outcome := b.listen(client, auditor, "/v1/events?after=start&workflow=run-2").outcome(); outcome.Write != out.ID {
			t.Errorf("%+v", outcome)
		}
		b.ask(agent, "GET", "/v1/events?workflow=run-2", "").problem(forbidden)
	})
}

// Nothing of another tenant is sent, and an idle stream sends a sign of life.
func TestStreamOfAnotherTenantIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		l := b.listenSlowly(b.served(), outsider, "/v1/events?after=start")
		began := time.Now()
		out := b.submit(order("A-1"))
		s, err := l.next()
		if err != nil || strings.Contains(string(s.Data), string(out.ID)) || s.Event != "heartbeat" || time.Since(began) > 2*heartbeat {
			t.Errorf("%+v %v after %s", s, err, time.Since(began))
		}
		// Its reader continues from the heartbeat's id, and misses nothing.
		again := b.listenSlowly(b.served(), outsider, "/v1/events", "Last-Event-ID: "+s.ID)
		if s, err := again.next(); err != nil || s.Event != "heartbeat" {
			t.Errorf("%+v, %v; want a heartbeat", s, err)
		}
	})
}

// What ends a stream besides its reader.
func TestStreamEnds(t *testing.T) {
	tests := map[string]struct {
		reason string
		end    func(b *bench)
		within time.Duration
	}{
		"the token is revoked":     {"a caller that is no longer known gets nothing", func(b *bench) { b.tokens.revoke(agent) }, askAgain},
		"the role is another one":  {"what it may read may be less now", func(b *bench) { b.tokens.makes(agent, "auditor@acme") }, askAgain},
		"the server is stopped":    {"it must not wait for streams", func(b *bench) { close(b.closing) }, 0},
		"it has lasted for long":   {"abandoned streams must not stay", func(*bench) {}, streamTime},
		"tokens cannot be checked": {"that says nothing about them", func(b *bench) { b.tokens.fails(unavailableLedger()) }, streamTime},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Native.Options(), nil)
				l := b.listenSlowly(b.served(), agent, "/v1/events")
				if _, err := l.body.ReadString('\n'); err != nil { // it is open
					t.Fatal(err)
				}
				began := time.Now()
				test.end(b)
				var err error
				for err == nil {
					_, err = l.next()
				}
				if took := time.Since(began); took > test.within+readGap || took < test.within-askAgain {
					t.Errorf("%s: it ended after %s, want %s: %v", test.reason, took, test.within, err)
				}
			})
		})
	}
}

// A reader that does not read is cut off, and its place is free again.
func TestStreamCutsOffWhoDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shares := access.NewShares(access.Limits{Streams: 2}, nil, nil) // one token may have one of two
		b := newBench(t, orders.Native.Options(), func(o *Options) { o.Who = shares.Resolver(o.Who) })
		b.api = shares.Handler(b.api)
		l := b.listenSlowly(b.served(), agent, "/v1/events")
		b.ask(agent, "GET", "/v1/events", "").problem(tooManyRequests)
		for range 2 {
			if _, err := l.body.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(heartbeat + 2*httpapi.SlowReader) // no client reads meanwhile, and a pipe buffers nothing
		synctest.Wait()
		b.listenSlowly(b.served(), agent, "/v1/events")
	})
}

// While the ledger is unreachable a stream waits, and nothing is lost.
func TestStreamOutlivesTheLedgersAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		l := b.listen(b.served(), agent, "/v1/events")
		b.ledger.breaks(unavailableLedger())
		time.Sleep(time.Minute)
		b.ledger.breaks(nil)
		out := b.submit(order("A-1"))
		if _, outcome := l.outcome(); outcome.Write != out.ID {
			t.Errorf("%+v", outcome)
		}
	})
}

// While a partition of the ledger is unreachable, a client that returns continues. A new one cannot begin.
func TestStreamContinuesWithoutAPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		b.submit(order("A-0"))
		first, _ := b.listen(b.served(), agent, "/v1/events?after=start").outcome()
		b.ledger.all = unavailableLedger()
		b.ask(agent, "GET", "/v1/events", "").problem(unavailable)
		l := b.listen(b.served(), agent, "/v1/events", "Last-Event-ID: "+first.ID)
		out := b.submit(order("A-1"))
		if _, outcome := l.outcome(); outcome.Write != out.ID {
			t.Errorf("%+v", outcome)
		}
	})
}

// A client that returns after the changes it missed were pruned gets a notice, and
// continues from now.
func TestStreamSaysWhatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		client := b.served()
		b.submit(order("A-0"))
		first, _ := b.listen(client, agent, "/v1/events?after=start").outcome()
		b.ledger.breaks(ledger.ErrTooFar)
		l := b.listenSlowly(client, agent, "/v1/events", "Last-Event-ID: "+first.ID)
		s, err := l.next()
		var p Problem
		if err := errors.Join(err, json.Unmarshal(s.Data, &p)); err != nil || s.Event != "missed" || p.Type != tooFar.uri() || s.ID == "" {
			t.Fatalf("%s %s %v", s.Event, s.Data, err)
		}
		b.ledger.breaks(nil)
		out := b.submit(order("A-1"))
		if s, err = l.next(); err != nil {
			t.Fatal(err)
		}
		for s.Event == "missed" { // it asked again before the ledger was well
			if s, err = l.next(); err != nil {
				t.Fatal(err)
			}
		}
		var outcome Sent
		if err := json.Unmarshal(s.Data, &outcome); err != nil || outcome.Write != out.ID {
			t.Errorf("%s %s %v", s.Event, s.Data, err)
		}
	})
}

func TestStreamIsRefusedBeforeItsHeader(t *testing.T) {
	b := newBench(t, orders.Native.Options(), nil)
	if p := b.ask(agent, "GET", "/v1/events?after=nonsense", "").problem(invalidRequest); p.Field != "after" {
		t.Errorf("%+v", p)
	}
	if p := b.ask(agent, "GET", "/v1/events", "", "Last-Event-ID: nonsense").problem(invalidRequest); p.Field != "Last-Event-ID" {
		t.Errorf("%+v", p)
	}
	b.ask(agent, "GET", "/v1/events", "", "Accept: application/json").problem(notAcceptable)
}

// A call may wait longer than the server's default bound.
func TestWaitingOutlivesTheBoundsOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), func(o *Options) { o.MaxWait = 20 * time.Minute })
		b.set(orders.Fault{Kind: orders.UnreadableRead})
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://readback/v1/writes", strings.NewReader(asJSON(order("A-1"))))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+agent)
		r.Header.Set("Prefer", "wait=600")
		began := time.Now()
		answer, err := b.served().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if took := time.Since(began); answer.StatusCode != 202 || took != 10*time.Minute {
			t.Errorf("%s after %s", answer.Status, took)
		}
	})
}

// A verified write that a recheck contradicts is an event of the stream.
func TestStreamSendsAFlip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := rolledBack(t)
		b.work()
		l := b.listen(b.served(), agent, "/v1/events")
		out := b.submit(order("A-1"))
		if _, outcome := l.outcome(); outcome.Write != out.ID || outcome.Outcome.Status != ledger.Verified || outcome.Outcome.RecheckUntil.IsZero() {
			t.Errorf("%+v; want verified, with a recheck pending", outcome)
		}
		if _, outcome := l.outcome(); outcome.Write != out.ID || outcome.Happened != ledger.EvEscalated || outcome.Outcome.Status != ledger.StatusReview {
			t.Errorf("%+v; want the review that the recheck led to", outcome)
		}
	})
}
