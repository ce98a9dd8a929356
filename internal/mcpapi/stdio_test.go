package mcpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/mcpapi"
)

// lines is a client of stdio that writes arbitrary lines.
type lines struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Scanner
}

func (b *bench) lines() *lines {
	b.t.Helper()
	return linesOf(b.t, mcpapi.NewAPI(b.server.ServerFor, mcpapi.APIOptions{Workflow: "run-1"}))
}

func linesOf(t *testing.T, api *mcpapi.API) *lines {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := api.Stdio(context.Background(), agent("bot"), in, out)
		_ = out.Close()
		done <- err
	}()
	l := &lines{t, toServer, bufio.NewScanner(fromServer)}
	l.out.Buffer(nil, 1<<20)
	t.Cleanup(func() {
		_ = toServer.Close()
		for l.out.Scan() { // until the server has gone
		}
		if err := <-done; err != nil {
			t.Errorf("stdio ended with %v", err)
		}
	})
	return l
}

// ask writes a line and reads one.
func (l *lines) ask(line string) (response response) {
	l.t.Helper()
	l.say(line)
	if !l.out.Scan() {
		l.t.Fatal("no answer")
	}
	response.status, response.body = 200, l.out.Text()
	if err := json.Unmarshal(l.out.Bytes(), &response.message); err != nil {
		l.t.Fatalf("%v: %s", err, response.body)
	}
	return response
}

func (l *lines) say(line string) {
	l.t.Helper()
	if _, err := io.WriteString(l.in, line+"\n"); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lines) initialize() {
	l.t.Helper()
	s := l.ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"lines","version":"1"}}}`)
	if !strings.Contains(s.body, `"protocolVersion":"2025-06-18"`) {
		l.t.Fatalf("answer %s", s.body)
	}
	l.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// TestWhatCannotBeReadEndsNothing: it gets a response, and the next message is handled.
func TestWhatCannotBeReadEndsNothing(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	l := b.lines()
	l.initialize()
	for name, c := range map[string]struct {
		line string
		code int
	}{
		"garbage":       {"hello", -32700},
		"half":          {`{"jsonrpc":"2.0"`, -32700},
		"two":           {`{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`, -32700},
		"member twice":  {`{"jsonrpc":"2.0","id":1,"method":"ping","id":2}`, -32700},
		"no message":    {`{"a":1}`, -32600},
		"a batch":       {`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, -32600},
		"a word":        {`"ping"`, -32600},
		"invalid UTF-8": {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", -32700},
		"too long":      {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 2<<20) + `"}}`, -32600},
		"too deep":      {`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, -32700},
		"other version": {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, -32600},
	} {
		s := l.ask(c.line)
		if s.message.Error == nil || s.message.Error.Code != c.code || s.message.ID != nil {
			t.Errorf("%s: %s, want the code %d", name, s.body, c.code)
		}
	}
	l.say("")
	if r := b.result(l.ask(callBody("7", "create_order", anOrder, ""))); r.Status != "verified" {
		t.Errorf("%+v", r)
	}
}

// TestTheProcessIsTheSession: a request that is delivered again is one call, and a later
// process under the same name gets the earlier outcome.
func TestTheProcessIsTheSession(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	for run, want := range []bool{false, true} {
		l := b.lines()
		l.initialize()
		first := b.result(l.ask(callBody("7", "create_order", anOrder, "")))
		again := b.result(l.ask(callBody("7", "create_order", anOrder, "")))
		next := b.result(l.ask(callBody("8", "create_order", `{"order_id":"A-2","amount_cents":5}`, "")))
		if begunBefore(first) != want || !begunBefore(again) || begunBefore(next) != want || first.ID != again.ID || next.Status != "verified" {
			t.Errorf("run %d: %+v\n%+v\n%+v", run, first, again, next)
		}
	}
	if b.effects() != 2 {
		t.Errorf("%d effects, want 2", b.effects())
	}
}

// TestACancelledRequestIsNotAnswered: the next response is that of the next request.
func TestACancelledRequestIsNotAnswered(t *testing.T) {
	for _, id := range []string{"7", `"seven"`} {
		t.Run(id, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				b.slow()
				l := b.lines()
				l.initialize()
				l.say(callBody(id, "create_order", anOrder, ""))
				synctest.Wait()
				l.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
				time.Sleep(time.Minute) // of the bubble's clock: the call's wait is over
				if r := l.ask(`{"jsonrpc":"2.0","id":8,"method":"ping"}`); r.message.ID != 8.0 {
					t.Errorf("the response is %s; want that of the ping", r.body)
				}
				if r := l.ask(callBody(id, "get_outcome", `{"id":"wr_none"}`, "")); !strings.Contains(r.body, "no write with this id") {
					t.Errorf("a request that has the same id later is answered %s", r.body)
				}
			})
		})
	}
}
