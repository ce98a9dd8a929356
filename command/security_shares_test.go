package command

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/access"
)

// Where the server has no room left every route refuses in the form of its API, names the
// setting and when to ask again, and has no effect.
func TestEveryRouteRefusesBeyondTheLimits(t *testing.T) {
	f := newFort(t, func(c string) string {
		return strings.Replace(c, "  grace: 20s\n", "  grace: 20s\n  limits: {requests: 1}\n", 1)
	})
	mine := f.populate(own)
	before := len(f.p.writes())
	holding := f.request(http.MethodPost, "/v1/writes", "{}", f.secret["agent@"+foreign], "Expect", "100-continue")
	body, end := io.Pipe() // of a length that is not announced: else nothing is sent before it has come
	holding.Body, holding.ContentLength = body, -1
	taken, ended := make(chan struct{}), make(chan struct{})
	// The server asks for the body when the request has the only place.
	holding = holding.WithContext(httptrace.WithClientTrace(holding.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(taken) }}))
	go func() {
		defer close(ended)
		if resp, err := f.client.Do(holding); err == nil {
			_ = resp.Body.Close()
		}
	}()
	t.Cleanup(func() { _ = end.Close(); <-ended })
	select {
	case <-taken:
	case <-ended:
		t.Fatal("the request that is to have the only place has ended")
	}
	asked := 0
	examples := examples()
	for _, r := range allRoutes() {
		if r.Act == "" {
			continue
		}
		e := examples[r.key()]
		body := ""
		if e.body != nil {
			body = e.body(mine)
		}
		q := f.request(r.Method, e.path(mine), body, f.secret["operator@"+own])
		if e.form {
			q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if e.accept != "" {
			q.Header.Set("Accept", e.accept)
		}
		a := f.do(q)
		asked++
		if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %s", r.key(), a)
			continue
		}
		switch r.area {
		case "v1":
			if a.field("type") != "https://readback.invalid/problems/too-many-requests" || a.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(a.field("detail"), "server.limits.requests") {
				t.Errorf("%s: %s", r.key(), a)
			}
		case "mcp", "gateway":
			var m struct {
				JSONRPC string `json:"jsonrpc"`
				Error   struct {
					Code    int
					Message string
					Data    struct {
						Limit, Setting string
						After          int `json:"retry_after_seconds"`
					}
				}
			}
			if err := json.Unmarshal([]byte(a.body), &m); err != nil || m.JSONRPC != "2.0" || m.Error.Code != -32029 || m.Error.Data.Limit != access.LimitRequests || m.Error.Data.Setting != "server.limits.requests" || m.Error.Data.After < 1 {
				t.Errorf("%s: %v, %s", r.key(), err, a)
			}
		case "gate":
			if a.field("code") != "CONCURRENT_EXECUTION_LIMIT" || !strings.Contains(a.field("message"), "server.limits.requests") {
				t.Errorf("%s: %s", r.key(), a)
			}
		case "desk":
			if !strings.Contains(a.body, "server.limits.requests") {
				t.Errorf("%s: %s", r.key(), a)
			}
		}
	}
	if asked < 50 {
		t.Errorf("only %d routes were asked", asked)
	}
	if after := len(f.p.writes()); after != before {
		t.Errorf("there are %d writes, and were %d", after, before)
	}
	for _, path := range []string{"/healthz", "/readyz"} { // a monitor gets a response
		if a := f.do(f.request(http.MethodGet, path, "", "")); a.status != http.StatusOK {
			t.Errorf("%s: %s", path, a)
		}
	}
}
