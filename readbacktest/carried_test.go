package readbacktest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	rt "github.com/readback-go/readback/readbacktest"
)

// TestWhatIsCarried: a proxy without faults returns the target's answer, or reports plainly that
// it cannot.
func TestWhatIsCarried(t *testing.T) {
	target := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/far":
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusSeeOther)
		case "/huge":
			_, _ = w.Write(bytes.Repeat([]byte("x"), 16<<20+1))
			return
		}
		_, _ = io.WriteString(w, r.Header.Get("Accept-Encoding")+"the answer") // kept from HEAD and 204 by servers
	})
	server := httptest.NewServer(target)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for way, p := range map[string]*rt.Proxy{
		"a handler": rt.NewProxy(t, target, rt.Options{}), "a server": rt.NewProxy(t, rt.Forward(base), rt.Options{}),
	} {
		over := &http.Transport{DisableCompression: true}
		t.Cleanup(over.CloseIdleConnections)
		for by, to := range map[string]struct {
			http.RoundTripper
			url string
		}{"in the process": {p.Transport(), "http://api.example"}, "over a connection": {over, p.URL()}} {
			for name, c := range map[string]struct {
				method, path, upgrade string
				want, reason          string
			}{
				"GET":        {"GET", "/", "", "200 the answer", "nothing is changed, and no encoding asked for"},
				"HEAD":       {"HEAD", "/", "", "200 ", "it has no body"},
				"204":        {"POST", "/none", "", "204 ", "it has no body"},
				"a redirect": {"POST", "/far", "", "303 the answer", "it is the client's to follow"},
				"web socket": {"GET", "/", "websocket", "501 readback: a proxy keeps bodies whole, and carries no web sockets\n", "it is refused plainly"},
				"huge":       {"GET", "/huge", "", "200 16777216 bytes, unexpected EOF", "what was cut must not look whole"},
			} {
				t.Run(way+", "+by+", "+name, func(t *testing.T) {
					req, err := http.NewRequestWithContext(t.Context(), c.method, to.url+c.path, http.NoBody)
					if err != nil {
						t.Fatal(err)
					}
					if c.upgrade != "" {
						req.Header.Set("Connection", "Upgrade")
						req.Header.Set("Upgrade", c.upgrade)
					}
					if got := carried(t, to, req); got != c.want {
						t.Errorf("%q, want %q: %s", got, c.want, c.reason)
					}
				})
			}
		}
	}
}

func carried(t *testing.T, by http.RoundTripper, req *http.Request) string {
	t.Helper()
	res, err := by.RoundTrip(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if len(text) > 1000 {
		return fmt.Sprintf("%d %d bytes, %v", res.StatusCode, len(text), err)
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", res.StatusCode, text)
}

// TestOneFaultOverAllWays: a story with two proxies puts its fault on one request to either, each
// request once.
func TestOneFaultOverAllWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]int{}
		rt.Replay(t, rt.Plan{Kinds: []rt.Kind{rt.LostAnswer}, Kills: -1}, func(s *rt.Story) {
			one, other := s.Proxy(&bank{}, rt.Options{}), s.Proxy(&bank{}, rt.Options{})
			_ = s.Run(func(ctx context.Context, run *rt.Run) error {
				post(ctx, run.Client(one), "http://one.example", invoice)
				post(ctx, run.Client(other), "http://other.example", invoice)
				return nil
			})
			var met []string
			for way, p := range map[string]*rt.Proxy{"one": one, "other": other} {
				for _, c := range p.Calls() {
					if c.Fault != rt.None {
						met = append(met, way)
					}
				}
			}
			seen[strings.Join(met, " and ")]++
		})
		if len(seen) != 3 || seen[""] != 1 || seen["one"] != 1 || seen["other"] != 1 {
			t.Errorf("stories in which an answer was lost on: %v; want none, one, and other, once each", seen)
		}
	})
}
