package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/httpapi"
)

// pipes is a listener whose connections are in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// Close does nothing: the test ends it.
func (p pipes) Close() error { return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// TestSlowCallersAreCutOff: a header or a body that arrives byte by byte, and an idle
// connection, end by the server's bounds.
func TestSlowCallersAreCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newMux(slog.New(slog.DiscardHandler))
		f.open([]route{{path: "/", handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })}},
			func(context.Context) error { return nil })
		s, l := httpapi.Server(access.Protect(f, access.ProtectOptions{}), nil), make(pipes)
		go func() { _ = s.Serve(l) }()
		for name, begin := range map[string]string{
			"a header":  "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ",
			"a body":    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
			"a chunk":   "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",
			"a request": "",
		} {
			ours, theirs := net.Pipe()
			l <- theirs
			go func() { _, _ = io.Copy(io.Discard, ours) }()
			began := time.Now()
			_, err := io.WriteString(ours, begin)
			for err == nil && time.Since(began) < time.Hour {
				time.Sleep(time.Second)
				if begin != "" {
					_, err = io.WriteString(ours, "a")
				} else {
					_, err = ours.Write(nil)
				}
			}
			if lasted := time.Since(began); err == nil || lasted > 3*time.Minute {
				t.Errorf("%s is waited for for %s: %v", name, lasted, err)
			}
			_ = ours.Close()
		}
		close(l)
		_ = s.Close()
	})
}

// Before the services exist every route except health is refused with a Retry-After;
// after that each path has its route.
func TestFront(t *testing.T) {
	f := newMux(slog.New(slog.DiscardHandler))
	ask := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		return w
	}
	if w := ask("/healthz"); w.Code != 200 {
		t.Errorf("/healthz: %d", w.Code)
	}
	for _, path := range []string{"/readyz", "/", "/v1/writes", "/api/v1/workflows"} {
		if w := ask(path); w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/inbox", http.NoBody)
	r.Header.Set("Accept", "text/html")
	w := httptest.NewRecorder()
	if f.ServeHTTP(w, r); w.Code != 503 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "Recorded writes are safe. Try again in a moment.") {
		t.Errorf("a browser gets %d: %s", w.Code, w.Body)
	}
	named := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(name)) })
	}
	f.open([]route{{path: "/mcp", handler: named("mcp")}, {path: "/v1/", handler: named("v1")}},
		func(context.Context) error { return nil })
	for path, want := range map[string]string{"/mcp": "mcp", "/v1/writes": "v1", "/v1/": "v1"} {
		if w := ask(path); w.Body.String() != want {
			t.Errorf("%s: %s, want %s", path, w.Body, want)
		}
	}
	for _, path := range []string{"/", "/mcpx", "/v1", "/v1x", "/x/v1/writes"} {
		if w := ask(path); w.Code != 404 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := ask("/readyz"); w.Code != 200 {
		t.Errorf("/readyz: %d", w.Code)
	}
	f.close()
	if w := ask("/readyz"); w.Code != 503 {
		t.Errorf("/readyz of a server that stops: %d", w.Code)
	}
}

// The bound on the reading of a request does not end one that has been read and whose
// caller waits for its response.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 30 * time.Second
		f := newMux(slog.New(slog.DiscardHandler))
		f.open([]route{{path: "/", handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
			case <-time.After(10 * bound):
				_, _ = w.Write([]byte("whole"))
			}
		})}}, func(context.Context) error { return nil })
		server, l := &http.Server{Handler: access.Protect(f, access.ProtectOptions{}), ReadTimeout: bound}, make(pipes)
		go func() { _ = server.Serve(l) }()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			l <- theirs
			return ours, nil
		}}}
		for _, body := range []string{"", "{}"} {
			resp, err := client.Post("http://localhost/", "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != 200 || string(text) != "whole" {
				t.Errorf("with the body %q: %d %q, %v", body, resp.StatusCode, text, err)
			}
		}
		close(l)
		_ = server.Close()
	})
}

func TestTheServerWaitsWithinBounds(t *testing.T) {
	s := newServer(Options{Process: Process{Log: slog.New(slog.DiscardHandler)}, Config: config.Config{Server: config.DefaultServer()}, listener: make(pipes)}).http
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("the server waits without bound: %+v", s)
	}
}
