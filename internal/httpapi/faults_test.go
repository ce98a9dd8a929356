package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/shards"
)

// as sends every request as one caller.
func as(c gate.Caller, err error) Resolver {
	return func(*http.Request) (gate.Caller, error) { return c, err }
}

func TestAgentsDecideNothing(t *testing.T) {
	s := &stand{}
	h := New(s, &Options{Caller: as(gate.Caller{Tenant: "t", Name: "bot", Role: engine.RoleAgent}, nil)})
	for _, path := range []string{"workflows", "workflow-control"} {
		for _, verb := range []string{"approve", "reject"} {
			w := ask(h, "POST", "/api/v1/"+path+"/wf_1/steps/pay/"+verb, `{"comment":"long enough"}`)
			if f := flatOf(t, w); w.Code != 403 || f.Code != gate.Forbidden || f.Error != "forbidden" {
				t.Errorf("%s %s: %d %+v", path, verb, w.Code, f)
			}
		}
	}
	if s.asked != 0 {
		t.Error("the gate was asked: by what it takes, an agent learns what is there")
	}
	if w := ask(h, "POST", gatePath, `{"step_type":"tool_call"}`); w.Code != 200 {
		t.Errorf("an agent's gate: %d %s", w.Code, w.Body)
	}
}

func TestResolverRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		status int
	}{
		"unknown":  {&gate.Error{Code: gate.Unauthorized, Message: "Missing tenant or org identity"}, 401},
		"forbids":  {&gate.Error{Code: gate.Forbidden, Message: "not yours"}, 403},
		"is broke": {errors.New("the store of tokens: password is hunter2"), 500},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stand{}
			w := ask(New(s, &Options{Caller: as(gate.Caller{}, test.err)}), "POST", gatePath, "{}")
			if w.Code != test.status || s.asked != 0 || strings.Contains(w.Body.String(), "hunter2") {
				t.Errorf("%d %s, asked %d; want %d", w.Code, w.Body, s.asked, test.status)
			}
		})
	}
}

// The text of an internal failure of the gate is for the log.
func TestFailures(t *testing.T) {
	const (
		secret   = "postgres://u:hunter2@db"
		gateText = "in the gate's own words"
	)
	coded := func(c gate.Code, cause error) func(context.Context) error {
		return func(context.Context) error { return &gate.Error{Code: c, Message: gateText, Err: cause} }
	}
	gone := fmt.Errorf("%w: %s", ledger.ErrUnavailable, secret)
	tests := map[string]struct {
		reason  string
		do      func(context.Context) error
		status  int
		code    gate.Code
		message string
	}{
		"panic":           {"a mistake of ours", func(context.Context) error { panic(secret) }, 500, gate.Internal, internalMessage},
		"any error":       {"likewise", func(context.Context) error { return errors.New(secret) }, 500, gate.Internal, internalMessage},
		"internal":        {"the gate's own text is returned, its cause is not", coded(gate.Internal, errors.New(secret)), 500, gate.Internal, gateText},
		"ledger":          {"it may be there again", func(context.Context) error { return gone }, 503, unavailable, "the ledger cannot be used now; the same request may be made again later"},
		"ledger, wrapped": {"likewise, in the gate's own words", coded(gate.Internal, gone), 503, unavailable, gateText + "; the same request may be made again later"},
		"code not known":  {"it is unknown", coded("NEWS", nil), 500, "NEWS", gateText},
		"unreadable":      {"the contract's", coded(gate.ApprovalUnreadable, errors.New(secret)), 503, gate.ApprovalUnreadable, gateText},
		"too many":        {"the contract's", coded(gate.TooMany, nil), 429, gate.TooMany, gateText},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			w := ask(New(&stand{do: test.do}, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}), "POST", gatePath, "{}")
			f := flatOf(t, w)
			if w.Code != test.status || f.Code != test.code || f.Message != test.message || strings.Contains(w.Body.String(), "hunter2") {
				t.Errorf("%s: %d %+v", test.reason, w.Code, f)
			}
			if again := w.Header().Get("Retry-After"); (again != "") != (w.Code == 503 || w.Code == 429) {
				t.Errorf("Retry-After %q", again)
			}
			if w.Code >= 500 && !strings.Contains(log.String(), "gate") {
				t.Errorf("the log does not say it: %q", log.String())
			}
		})
	}
}

func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stand{do: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		w := ask(New(s, nil), "POST", gatePath, "{}")
		if f := flatOf(t, w); w.Code != 503 || f.Code != unavailable {
			t.Errorf("%d %+v", w.Code, f)
		}
	})
}

func TestNoSecretInLogs(t *testing.T) {
	var log bytes.Buffer
	s := &stand{do: func(context.Context) error { return errors.New("broke") }}
	h := New(s, &Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	ask(h, "POST", gatePath+"?token=hunter1", `{"step_type":"tool_call","step_input":{"password":"hunter2"}}`,
		"Authorization", "Basic YW5hOmh1bnRlcjM=", "X-License-Key", "hunter4", "X-Client-Secret", "hunter5", "Cookie", "hunter6")
	for _, secret := range []string{"hunter", "YW5hOmh1bnRlcjM"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%q is in the log:\n%s", secret, log.String())
		}
	}
	if !strings.Contains(log.String(), "status=500") || !strings.Contains(log.String(), "error=") {
		t.Errorf("the log says too little:\n%s", log.String())
	}
}

func TestLocal(t *testing.T) {
	const (
		cross = "Sec-Fetch-Site"
		local = "localhost:8080"
	)
	tests := map[string]struct {
		reason, host string
		headers      []string
		status       int
	}{
		"client":          {"no browser", local, nil, 200},
		"capitals":        {"names have no case", "LocalHost:8080", nil, 200},
		"address":         {"this machine", "127.0.0.1:8080", nil, 200},
		"address 6":       {"this machine", "[::1]:8080", nil, 200},
		"no port":         {"this machine", "[::1]", nil, 200},
		"rebound":         {"an attacker's name that points here", "evil.example:8080", nil, 403},
		"other address":   {"not this machine", "192.0.2.1:8080", nil, 403},
		"nearly":          {"not this machine", "localhost.evil.example", nil, 403},
		"page":            {"a page in a user's browser", local, []string{cross, "cross-site"}, 403},
		"page, same site": {"another port's page", local, []string{cross, "same-site"}, 403},
		"old browser":     {"says only where it comes from", local, []string{"Origin", "https://evil.example"}, 403},
		"own page":        {"one that is served here", local, []string{cross, "same-origin"}, 200},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &stand{}
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Host = test.host
				Local(New(s, nil)).ServeHTTP(w, r)
			})
			w := ask(h, "POST", gatePath, "{}", test.headers...)
			if w.Code != test.status || (s.asked == 1) != (test.status == 200) {
				t.Errorf("%s: %d %s", test.reason, w.Code, w.Body)
			}
			if test.status == 403 {
				if f := flatOf(t, w); f.Code != gate.Forbidden {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

func TestHealth(t *testing.T) {
	broken := errors.New("postgres://u:hunter2@db is gone")
	for name, test := range map[string]struct {
		path   string
		ready  func(context.Context) error
		status int
	}{
		"alive":            {"/healthz", func(context.Context) error { return broken }, 200},
		"ready":            {"/readyz", func(context.Context) error { return nil }, 200},
		"ready by default": {"/readyz", nil, 200},
		"ready but for some": {"/readyz", func(context.Context) error {
			return fmt.Errorf("b: %w", &shards.UnreachableError{Partitions: []string{"b"}})
		}, 200},
		"ledger is gone":     {"/readyz", func(context.Context) error { return broken }, 503},
		"ledger hangs":       {"/readyz", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 503},
		"not to be posted":   {"/healthz", nil, 404},
		"nothing else there": {"/healthz/x", nil, 404},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				method := "GET"
				if name == "not to be posted" {
					method = "POST"
				}
				w := ask(New(&stand{}, &Options{Ready: test.ready}), method, test.path, "")
				if w.Code != test.status || strings.Contains(w.Body.String(), "hunter2") {
					t.Errorf("%d %s, want %d", w.Code, w.Body, test.status)
				}
			})
		})
	}
}

// A caller can make a server wait, and store data, only within bounds.
func TestServerIsBounded(t *testing.T) {
	s := Server(http.NotFoundHandler(), nil)
	for what, bound := range map[string]time.Duration{"header": s.ReadHeaderTimeout, "body": s.ReadTimeout, "answer": s.WriteTimeout, "idle": s.IdleTimeout} {
		if bound <= 0 || bound > 2*time.Minute {
			t.Errorf("%s: %s", what, bound)
		}
	}
	if s.WriteTimeout <= defaultTime {
		t.Errorf("an answer that takes as long as it may is cut off: %s", s.WriteTimeout)
	}
	if s.MaxHeaderBytes <= 0 || s.MaxHeaderBytes > http.DefaultMaxHeaderBytes/4 {
		t.Errorf("headers of %d bytes", s.MaxHeaderBytes)
	}
}

// slow is a body that does not come before the server's patience ends.
type slow struct{}

func (slow) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestSlowBody(t *testing.T) {
	s := &stand{}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, gatePath, slow{})
	w := httptest.NewRecorder()
	New(s, nil).ServeHTTP(w, r)
	if f := flatOf(t, w); w.Code != 408 || f.Code != requestTimeout || s.asked != 0 {
		t.Errorf("%d %+v, asked %d", w.Code, f, s.asked)
	}
}
