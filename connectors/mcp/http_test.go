package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/intent"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
)

// overHTTP serves the fake over streamable HTTP; before receives every call of a write tool, and
// may answer in its place.
func overHTTP(t *testing.T, inJSON bool, before func(w http.ResponseWriter, r *http.Request) bool) (*fakemcp.Server, *mcp.Connector, *atomic.Int64) {
	t.Helper()
	s := fakemcp.New(fakemcp.NewWorld())
	posts := new(atomic.Int64)
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.MCP }, &sdk.StreamableHTTPOptions{JSONResponse: inJSON})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := new(strings.Builder)
		if r.Method == http.MethodPost {
			_, _ = copyTo(body, r)
			if strings.Contains(body.String(), `"create_order"`) {
				posts.Add(1)
				if before != nil && before(w, r) {
					return
				}
			}
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	c, err := mcp.New(pinned(t, fakemcp.Contract), mcp.Options{Server: mcp.Server{URL: web.URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return s, c, posts
}

func create(n int) connectors.Request {
	in := order(intent.Create, n)
	in.Tenant, in.Workflow, in.Tool, in.Destination = "acme", "run", "create", "shop"
	return connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1}
}

// TestOneCallOverHTTP: whatever an HTTP server does, one write is one POST.
func TestOneCallOverHTTP(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		before func(w http.ResponseWriter, r *http.Request) bool
		fate   connectors.Fate
	}{
		"good":           {"nothing is wrong", nil, connectors.FateAnswered},
		"throttled":      {"429 says not now", status(http.StatusTooManyRequests), connectors.FateThrottled},
		"unauthorized":   {"401 is about the login and not about the write", status(http.StatusUnauthorized), connectors.FateLogin},
		"forbidden":      {"403 says no to this write", status(http.StatusForbidden), connectors.FateRefused},
		"bad gateway":    {"502 may come from a gateway", status(http.StatusBadGateway), connectors.FateUnknown},
		"unavailable":    {"503 may too", status(http.StatusServiceUnavailable), connectors.FateUnknown},
		"cut":            {"it was received and not answered", cutOff, connectors.FateUnknown},
		"redirected":     {"a redirect of a write is not followed", redirect(http.StatusTemporaryRedirect), connectors.FateRefused},
		"session gone":   {"404 means that the session is over, and the server processed no message of it", status(http.StatusNotFound), connectors.FateNotSent},
		"too long":       {"the connector does not read it, and the call may have been carried out", tooLong, connectors.FateUnknown},
		"redirected 302": {"nor one that makes a GET of it", redirect(http.StatusFound), connectors.FateUnknown},
	} {
		for _, inJSON := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				_, conn, posts := overHTTP(t, inJSON, c.before)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				_, err := conn.Write(ctx, create(1))
				if got := connectors.FateOf(err); got != c.fate || posts.Load() != 1 {
					t.Errorf("%s: fate %q (%v) after %d posts, want %q after 1", c.reason, got, err, posts.Load(), c.fate)
				}
			})
		}
	}
}

func status(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(code)
		return true
	}
}

func redirect(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "/elsewhere", code)
		return true
	}
}

// tooLong is a correct answer that is longer than the limit.
func tooLong(w http.ResponseWriter, r *http.Request) bool {
	var call struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(call.ID)+`,"result":{"content":[{"type":"text","text":"`)
	for range 17 {
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20)) // the client may have gone
	}
	_, _ = io.WriteString(w, `"}]}}`)
	return true
}

func cutOff(w http.ResponseWriter, _ *http.Request) bool {
	c, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = c.Close()
	}
	return true
}

// TestNothingListens: a connection that cannot be had is proof.
func TestNothingListens(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	web.Close()
	c, err := mcp.New(pinned(t, fakemcp.Contract), mcp.Options{Server: mcp.Server{URL: web.URL}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(t.Context(), create(1)); connectors.FateOf(err) != connectors.FateNotSent || strings.Contains(err.Error(), web.URL) {
		t.Errorf("%v", err)
	}
}

func TestServersThatAreNotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		server mcp.Server
		says   string
	}{
		"none":       {"there must be one", mcp.Server{}, "exactly one of command and url"},
		"two":        {"which is meant", mcp.Server{URL: "https://x.example", Command: []string{"x"}}, "exactly one"},
		"http":       {"credentials in the clear", mcp.Server{URL: "http://mcp.example.com"}, "want https"},
		"a password": {"it would be logged", mcp.Server{URL: "https://a:hunter2@mcp.example.com"}, "user name or a password"},
		"no address": {"and is not repeated", mcp.Server{URL: "://hunter2"}, "is no address"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := mcp.NewClient(c.server, nil)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v; want %q", c.reason, err, c.says)
			}
		})
	}
}

// copyTo reads a body and puts it back.
func copyTo(to *strings.Builder, r *http.Request) (int, error) {
	text, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(text)))
	n, _ := to.Write(text)
	return n, err
}
