package v1

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/ledger"
)

// A log line has no token, no body and no query.
func TestLogsHoldNoSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := newBench(t, orders.Native.Options(), func(o *Options) {
			o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		b.ask("agent:hush-token@acme", "POST", "/v1/writes", asJSON(order("hush-order")), "Prefer: wait=60", "Cookie: session=hush-cookie").want(200)
		b.ask("operator@hush\nforged=line", "GET", "/v1/writes?workflow=hush-query", "")
		b.ask(auditor, "GET", "/v1/writes?hush-query=1", "").want(400)
		b.ask(auditor, "GET", "/v1/nothing/hush-path", "").want(404)
		b.ledger.breaks(fmt.Errorf("%w: away", ledger.ErrUnavailable))
		b.ask(agent, "POST", "/v1/writes", asJSON(order("hush-order"))).want(503)
		text := log.String()
		if !strings.Contains(text, "route=") {
			t.Fatalf("nothing was logged: %s", text)
		}
		for _, hush := range []string{"hush-order", "hush-cookie", "hush-query", "hush-path", "Bearer", "\nforged"} {
			if strings.Contains(text, hush) {
				t.Errorf("%q is in the log:\n%s", hush, text)
			}
		}
	})
}

// A program that is too old for its ledger says that, and not that the ledger is damaged.
func TestNewerLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		b.ledger.breaks(fmt.Errorf("%w: it has version 9", ledger.ErrVersion))
		b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1"))).problem(newer)
	})
}

// A caller that sends its body slowly is refused by the server's bounds, and holds
// nothing any longer.
func TestSlowBodyIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		p := newPipes()
		server := httpapi.Server(b.api, nil)
		done := make(chan struct{})
		go func() { defer close(done); _ = server.Serve(p) }()
		defer func() { _ = server.Close(); <-done }()
		conn, err := p.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		began := time.Now()
		if _, err := fmt.Fprintf(conn, "POST /v1/writes HTTP/1.1\r\nHost: readback\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{", agent); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusRequestTimeout || time.Since(began) > time.Minute {
			t.Errorf("%s after %s", answer.Status, time.Since(began))
		}
	})
}

// Texts of models come back as inert as JSON can make them.
func TestTextsAreInert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		w := order("A-1", held)
		w.Expect["note"] = "</script><script>alert(1)</script>\u2028\x1b[31m"
		out := b.submit(w)
		a := b.ask(auditor, "GET", writePath(out.ID, "/record"), "").want(200)
		for _, raw := range []string{"<script", "\u2028", "\x1b"} {
			if bytes.Contains(a.Body, []byte(raw)) {
				t.Errorf("%q comes back as it is", raw)
			}
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Content-Type": "application/json"} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s %q", name, got)
			}
		}
	})
}

func TestPreferences(t *testing.T) {
	tests := map[string]struct {
		headers []string
		wait    time.Duration
		stated  bool
	}{
		"none":               {nil, 0, false},
		"so long":            {[]string{"wait=10"}, 10 * time.Second, true},
		"not at all":         {[]string{"wait=0"}, 0, true},
		"too long":           {[]string{"wait=3600"}, time.Minute, true},
		"among others":       {[]string{"respond-async, wait=5; foo=bar"}, 5 * time.Second, true},
		"in another header":  {[]string{"respond-async", "Wait = \"7\""}, 7 * time.Second, true},
		"the first counts":   {[]string{"wait=1, wait=2"}, time.Second, true},
		"no number":          {[]string{"wait=soon"}, 0, false},
		"backwards":          {[]string{"wait=-1"}, 0, false},
		"out of all bounds":  {[]string{"wait=99999999999999999999"}, 0, false},
		"something else":     {[]string{"waiting=1"}, 0, false},
		"a number, no whole": {[]string{"wait=1.5"}, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			wait, stated := preferred(http.Header{"Prefer": test.headers}, time.Minute)
			if wait != test.wait || stated != test.stated {
				t.Errorf("%s %t", wait, stated)
			}
		})
	}
}

func TestIdempotencyKeys(t *testing.T) {
	tests := map[string]struct {
		headers []string
		want    string
		ok      bool
	}{
		"none":             {nil, "", true},
		"bare":             {[]string{"k-1"}, "k-1", true},
		"in quotes":        {[]string{`"k-1"`}, "k-1", true},
		"with escapes":     {[]string{`"a\"b\\c"`}, `a"b\c`, true},
		"blanks around":    {[]string{"  k-1 "}, "k-1", true},
		"a blank inside":   {[]string{"wire 7"}, "wire 7", true},
		"the longest":      {[]string{strings.Repeat("k", 255)}, strings.Repeat("k", 255), true},
		"too long":         {[]string{strings.Repeat("k", 256)}, "", false},
		"empty":            {[]string{""}, "", false},
		"empty in quotes":  {[]string{`""`}, "", false},
		"an open quote":    {[]string{`"k-1`}, "", false},
		"more behind":      {[]string{`"k-1"; a=b`}, "", false},
		"another escape":   {[]string{`"k\n"`}, "", false},
		"twice":            {[]string{"k-1", "k-1"}, "", false},
		"no ASCII":         {[]string{"schlüssel"}, "", false},
		"a control":        {[]string{"k\x07"}, "", false},
		"a blank in front": {[]string{`" k"`}, "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := idempotencyKey(http.Header{"Idempotency-Key": test.headers})
			if got != test.want || (err == nil) != test.ok {
				t.Errorf("%q %v", got, err)
			}
		})
	}
}

func TestWhatIsAccepted(t *testing.T) {
	tests := map[string]struct {
		accept string
		want   bool
	}{
		"no preference":     {"", true},
		"anything":          {"*/*", true},
		"the family":        {"application/*;q=0.1", true},
		"it":                {"text/html, application/json", true},
		"not it":            {"text/html", false},
		"all but it":        {"*/*, application/json;q=0", false},
		"it, but no others": {"*/*;q=0, application/json", true},
		"nonsense":          {";;;", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := accepts(http.Header{"Accept": {test.accept}}, jsonType); got != test.want {
				t.Errorf("%t", got)
			}
		})
	}
}
