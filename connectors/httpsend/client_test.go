package httpsend_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
)

func newClient(t *testing.T, o httpsend.Options) *httpsend.Client {
	t.Helper()
	if o.Transport == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		t.Cleanup(transport.CloseIdleConnections)
		o.Transport = transport
	}
	return httpsend.New(&o)
}

func post(t *testing.T, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func get(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func wantFate(t *testing.T, err error, want connectors.Fate, why string) {
	t.Helper()
	if got := connectors.FateOf(err); got != want {
		t.Errorf("fate %q (%v), want %q: %s", got, err, want, why)
	}
}

// TestOneRequestOnTheWire cuts a kept connection: in that case net/http sends again by itself if
// there is an idempotency key.
func TestOneRequestOnTheWire(t *testing.T) {
	for name, c := range map[string]struct{ method, header, body string }{
		"post":              {http.MethodPost, "", "{}"},
		"post with key":     {http.MethodPost, "Idempotency-Key", "{}"},
		"post with x-key":   {http.MethodPost, "X-Idempotency-Key", "{}"},
		"delete with key":   {http.MethodDelete, "Idempotency-Key", ""},
		"put":               {http.MethodPut, "", "{}"},
		"delete":            {http.MethodDelete, "", ""},
		"patch with key":    {http.MethodPatch, "Idempotency-Key", "{}"},
		"empty post, key":   {http.MethodPost, "Idempotency-Key", ""},
		"empty post, x-key": {http.MethodPost, "X-Idempotency-Key", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var writes atomic.Int32
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				writes.Add(1)
				panic(http.ErrAbortHandler)
			})
			client := newClient(t, httpsend.Options{})
			if _, err := client.Read(get(t, server.URL)); err != nil {
				t.Fatal(err)
			}
			var body io.Reader
			if c.body != "" {
				body = strings.NewReader(c.body)
			}
			req, err := http.NewRequestWithContext(t.Context(), c.method, server.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			if c.header != "" {
				req.Header.Set(c.header, "k")
			}
			_, err = client.Write(req)
			wantFate(t, err, connectors.FateUnknown, "the server read it and cut the connection")
			if n := writes.Load(); n != 1 {
				t.Errorf("the server saw %d requests, want 1", n)
			}
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for status, want := range map[int]connectors.Fate{
		301: connectors.FateUnknown, 302: connectors.FateUnknown, 303: connectors.FateUnknown,
		307: connectors.FateRefused, 308: connectors.FateRefused,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var elsewhere atomic.Int32
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					elsewhere.Add(1)
					return
				}
				http.Redirect(w, r, "/elsewhere", status)
			})
			client := newClient(t, httpsend.Options{})
			a, err := client.Write(post(t, server.URL, "{}"))
			wantFate(t, err, want, "a redirect is no success")
			if a.Status != status {
				t.Errorf("the answer has status %d, want %d", a.Status, status)
			}
			if _, err := client.Read(get(t, server.URL)); err == nil {
				t.Error("a read that was redirected gave no error")
			}
			if n := elsewhere.Load(); n != 0 {
				t.Errorf("the redirect was followed %d times", n)
			}
		})
	}
}

func TestNotSent(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	secure.Config.ErrorLog = nil
	called, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		req    *http.Request
		reason string
	}{
		"refused":     {post(t, closed.URL, "{}"), "nothing listens"},
		"certificate": {post(t, secure.URL, "{}"), "the handshake failed before the request"},
		"no TLS":      {post(t, strings.Replace(serve(t, func(http.ResponseWriter, *http.Request) {}).URL, "http:", "https:", 1), "{}"), "the other side speaks no TLS"},
		"called off":  {post(t, secure.URL, "{}").WithContext(called), "the context had ended"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newClient(t, httpsend.Options{}).Write(c.req)
			wantFate(t, err, connectors.FateNotSent, c.reason)
		})
	}
	t.Run("name", func(t *testing.T) {
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "orders.invalid", IsNotFound: true}
		}}
		_, err := newClient(t, httpsend.Options{Transport: transport}).Write(post(t, "http://orders.invalid", "{}"))
		wantFate(t, err, connectors.FateNotSent, "the name is not known")
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSilentTransport: a transport that does not report whether it had a connection proves
// nothing, whatever its error.
func TestSilentTransport(t *testing.T) {
	client := newClient(t, httpsend.Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
	})})
	_, err := client.Write(post(t, "http://orders.invalid", "{}"))
	wantFate(t, err, connectors.FateUnknown, "it may have sent before it dialled")
}

// TestHTTP2 checks that proof and doubt are distinguished over HTTP/2 as well, where connections
// are shared.
func TestHTTP2(t *testing.T) {
	var writes atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.ProtoMajor != 2 {
			t.Errorf("the request came over %s, want HTTP/2", r.Proto)
		}
		if r.Method == http.MethodPost {
			writes.Add(1)
			panic(http.ErrAbortHandler)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	client := newClient(t, httpsend.Options{Transport: server.Client().Transport})
	if _, err := client.Read(get(t, server.URL)); err != nil {
		t.Fatal(err)
	}
	req := post(t, server.URL, "{}")
	req.Header.Set("Idempotency-Key", "k")
	_, err := client.Write(req)
	wantFate(t, err, connectors.FateUnknown, "the server read it and reset the stream")
	if n := writes.Load(); n != 1 {
		t.Errorf("the server saw %d requests, want 1", n)
	}
	_, err = newClient(t, httpsend.Options{Transport: &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}}).Write(post(t, server.URL, "{}"))
	wantFate(t, err, connectors.FateNotSent, "the certificate is not trusted")
}

// TestEarlyAnswerIsKept: what follows a 2xx does not take it back, and a read needs all
// of it.
func TestEarlyAnswerIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		body    func(w http.ResponseWriter, r *http.Request)
		bodyErr error // io.EOF: any
	}{
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusOK)
			_, _ = io.WriteString(w, `{"id":`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, io.ErrUnexpectedEOF},
		"too long": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", 2000))
		}, httpsend.ErrTooLong},
		"without end": {func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := io.WriteString(w, strings.Repeat("x", 2000)); err != nil {
					return
				}
			}
		}, httpsend.ErrTooLong},
		"falls silent": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"id":`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, c.body)
			client := newClient(t, httpsend.Options{MaxBody: 1000, Timeout: 300 * time.Millisecond})
			a, err := client.Write(post(t, server.URL, "{}"))
			wantFate(t, err, connectors.FateAnswered, "the status was success")
			if a.Code() != "200" || !errors.Is(a.BodyErr, c.bodyErr) || len(a.Body) > 1000 {
				t.Errorf("code %s, body error %v, %d bytes; want 200, %v and at most 1000", a.Code(), a.BodyErr, len(a.Body), c.bodyErr)
			}
			if err := a.Decode(new(any)); !errors.Is(err, c.bodyErr) {
				t.Errorf("decode: %v, want %v", err, c.bodyErr)
			}
			if _, err := client.Read(get(t, server.URL)); !errors.Is(err, c.bodyErr) {
				t.Errorf("read: %v, want %v", err, c.bodyErr)
			}
		})
	}
}

func TestReadWantsExactly200(t *testing.T) {
	for _, status := range []int{201, 202, 203, 204, 206, 304, 400, 401, 403, 404, 410, 429, 500, 503} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		if a, err := newClient(t, httpsend.Options{}).Read(get(t, server.URL)); err == nil || a.Status != status {
			t.Errorf("status %d: answer %d and error %v; want the status and an error", status, a.Status, err)
		}
	}
}

func TestReadIsFresh(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Cache-Control"); got != "no-cache" {
			t.Errorf("Cache-Control %q, want no-cache", got)
		}
	})
	if _, err := newClient(t, httpsend.Options{}).Read(get(t, server.URL)); err != nil {
		t.Error(err)
	}
}

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		ok     bool
		reason string
	}{
		"object":   {`{"n":12345678901234567890.10}`, true, "numbers stay as they are"},
		"blanks":   {" {}\n", true, "blanks around do not count"},
		"nothing":  {"", false, "no value"},
		"page":     {"<html>", false, "not JSON"},
		"half":     {`{"n":`, false, "not whole"},
		"two":      {`{} {}`, false, "more than one"},
		"and more": {`{} x`, false, "something follows"},
	} {
		t.Run(name, func(t *testing.T) {
			var v any
			err := httpsend.Answer{Body: []byte(c.body)}.Decode(&v)
			if (err == nil) != c.ok || (err != nil && !errors.Is(err, httpsend.ErrNotJSON)) {
				t.Errorf("%q: %v: %s", c.body, err, c.reason)
			}
			if m, ok := v.(map[string]any); ok && m["n"] != nil && fmt.Sprint(m["n"]) != "12345678901234567890.10" {
				t.Errorf("the number came out as %v", m["n"])
			}
		})
	}
}

// TestErrorsKeepSecrets: neither the query nor the body comes up in errors,
// which get stored.
func TestErrorsKeepSecrets(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, "secret-in-body")
	})
	client := newClient(t, httpsend.Options{})
	for _, path := range []string{"/cut", "/422"} {
		if _, err := client.Write(post(t, server.URL+path+"?token=secret", "secret")); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error is %v; want one without secrets", path, err)
		}
	}
}

// TestErrorsKeepWhatCannotBeParsed: net/http quotes it, and from an echo it is
// our own request.
func TestErrorsKeepWhatCannotBeParsed(t *testing.T) {
	for name, reply := range map[string]string{
		"an echo":   "POST /a?token=secret HTTP/1.1\r\nAuthorization: secret\r\n\r\n",
		"a header":  "HTTP/1.1 200 OK\r\nsecret\r\n\r\n",
		"a length":  "HTTP/1.1 200 OK\r\nContent-Length: secret\r\n\r\n",
		"elsewhere": "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://[::1%23/?token=secret\r\nContent-Length: 0\r\n\r\n",
	} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, reply)
			_ = conn.Close()
		})
		_, err := newClient(t, httpsend.Options{}).Write(post(t, server.URL+"/a?token=secret", "secret"))
		if err == nil || strings.Contains(err.Error(), "secret") || connectors.FateOf(err) != connectors.FateUnknown {
			t.Errorf("%s: the error is %v; want one of unknown fate without the secret", name, err)
		}
	}
}

func TestDefaultTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := httpsend.New(&httpsend.Options{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})})
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://orders.invalid", nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = client.Write(req)
		if d := time.Since(began); d != httpsend.DefaultTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended after %v with %v, want %v and the deadline", d, err, httpsend.DefaultTimeout)
		}
	})
}
