package readbacktest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/internal/wire"
)

// maxBody bounds the body of a request or an answer, which is kept in memory: tests send far
// less.
const maxBody = 16 << 20

// Proxy runs before an HTTP API, in the same process. Requests come over [Proxy.Transport], or
// over [Proxy.URL]. Bodies are kept in memory whole; answers are not streamed. It has the methods
// of [Log].
type Proxy struct {
	*Log
	target http.RoundTripper
	past   past[answer]
	serve  sync.Once
	server *httptest.Server
}

// NewProxy returns a proxy before a target: a handler of the test's own, or [Forward]. tb fails
// if the options are invalid.
func NewProxy(tb testing.TB, target http.Handler, o Options) *Proxy {
	tb.Helper()
	if target == nil {
		tb.Fatalf("readbacktest: NewProxy has no target; want an http.Handler, or Forward of a URL")
	}
	o = o.checked(tb)
	p := &Proxy{Log: newLog(tb, o), target: wire.Transport(target, nil), past: past[answer]{on: o.lags()}}
	for _, r := range o.Watch {
		p.know(r, nil)
	}
	return p
}

// Forward is a remote target: the server at a base URL. An unreachable server looks like a dead
// connection.
func Forward(base *url.URL) http.Handler {
	// Connections are used once: net/http repeats by itself a request that a kept connection may
	// have lost, and no connection outlives the test. Nor does it ask for another encoding than
	// the client did.
	return forward(base, &http.Transport{DisableKeepAlives: true, DisableCompression: true})
}

func forward(base *url.URL, by http.RoundTripper) http.Handler {
	to := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(base) },
		Transport:    by,
		ErrorLog:     slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // the client sees it
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// As for requests of a server: pass on a truncated answer as truncated.
		to.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, &http.Server{})))
	})
}

// Transport returns a transport that sends requests to the target, whatever host they name. It
// uses no network and starts no goroutine, so it works in a testing/synctest bubble.
func (p *Proxy) Transport() http.RoundTripper {
	return wire.Transport(p, func(r *http.Request) bool {
		if p.faults.Left(Unreachable) == 0 {
			return true
		}
		var body []byte
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body) // it is in memory
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		_, refused := p.faults.First(Request{Op: Op(r.Method + " " + r.URL.Path), Write: p.options.IsWrite(with(r, body)), Key: p.options.Key(with(r, body)), Body: body}, Unreachable)
		return !refused
	})
}

// Client returns a client that uses [Proxy.Transport] and has no time-out.
func (p *Proxy) Client() *http.Client { return &http.Client{Transport: p.Transport()} }

// URL is where the proxy listens, on this machine only, from the first call to the end of the
// test. Do not use it in a testing/synctest bubble, which has no network. A net/http client
// repeats by itself requests that a kept connection may have lost (reads, and requests with an
// idempotency key): the log shows it.
func (p *Proxy) URL() string {
	p.serve.Do(func() {
		p.server = httptest.NewServer(p)
		p.tb.Cleanup(p.server.Close)
	})
	return p.server.URL
}

// ServeHTTP implements [http.Handler].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		http.Error(w, "readbacktest: a proxy keeps bodies whole, and carries no web sockets", http.StatusNotImplemented)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "readbacktest: the body cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	again := func() *http.Request { return with(r, body) }
	c, f := p.begin(Call{
		Write: p.options.IsWrite(again()), What: r.Method + " " + r.URL.Path, Key: p.options.Key(again()), Body: body,
	})
	if !c.Write {
		p.know(r, body)
	}
	if f.Kind == DroppedField || f.Kind == NormalisedField {
		if body, err = altered(f.Kind, body, p.options.Field); err != nil {
			p.unharmed(c, err.Error())
		}
	}
	carry(r.Context(), p.Log, c, f, way[answer]{
		send: func(ctx context.Context) (answer, string, bool) {
			if c.Write {
				p.past.keep(context.WithoutCancel(ctx), p.now())
			}
			a := p.send(ctx, r, body)
			return a, a.String(), a.status/100 == 2
		},
		dead:    answer{dead: true},
		status:  answered,
		half:    func(a answer) (answer, string) { a = a.half(); return a, a.String() },
		phantom: func() (answer, string) { a := p.phantom(again()); return a, a.String() },
		old:     func(f Fault) (answer, bool) { return p.past.lagging(question(r, body), c, f) },
	}).writeTo(w)
}

// with is a request with its body from the beginning.
func with(r *http.Request, body []byte) *http.Request {
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	again.ContentLength = int64(len(body))
	return again
}

// send carries a request to the target.
func (p *Proxy) send(ctx context.Context, r *http.Request, body []byte) answer {
	out := with(r, body).WithContext(ctx)
	if out.URL.Host == "" {
		out.URL.Host = r.Host
	}
	res, err := p.target.RoundTrip(out)
	if err != nil {
		return answer{dead: true}
	}
	defer func() { _ = res.Body.Close() }() // it is in memory
	a := answer{status: res.StatusCode, header: res.Header}
	if a.body, err = io.ReadAll(io.LimitReader(res.Body, maxBody+1)); err != nil {
		a.cut = true
	}
	switch {
	case len(a.body) > maxBody: // it must not appear complete
		a.body, a.cut = a.body[:maxBody], true
	case r.Method == http.MethodHead, a.status == http.StatusNoContent, a.status == http.StatusNotModified:
		a.body = nil // like a server, whatever its handler writes
	}
	return a
}

// altered is a JSON body in which one field is missing, or has another value.
func altered(k Kind, body []byte, field string) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var whole any
	if err := d.Decode(&whole); err != nil {
		return body, errors.New("the body is no JSON")
	}
	done := false
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for name, e := range v {
				walk(e)
				if name != field {
					continue
				}
				done = true
				switch e := e.(type) {
				case string:
					v[name] = strings.ToUpper(e)
				case json.Number:
					n, _ := e.Float64()
					v[name] = n + 1
				}
				if k == DroppedField {
					delete(v, name)
				}
			}
		}
	}
	walk(whole)
	if !done {
		return body, fmt.Errorf("the body has no field %q (Options.Field)", field)
	}
	return json.Marshal(whole)
}

func (p *Proxy) phantom(r *http.Request) answer {
	rec := httptest.NewRecorder()
	p.options.Phantom.ServeHTTP(rec, r)
	return answer{status: rec.Code, header: rec.Header(), body: rec.Body.Bytes()}
}

// echo answers with success and the request's body, as many APIs do.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = io.Copy(w, r.Body) // both are in memory
}

func (p *Proxy) know(r *http.Request, body []byte) {
	p.past.know(question(r, body), func(ctx context.Context) answer { return p.send(ctx, r, body) })
}

func question(r *http.Request, body []byte) string {
	return fmt.Sprintf("%s %s\n%s", r.Method, r.URL.RequestURI(), body)
}

// answer is an HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
	cut    bool // the body is truncated
	dead   bool // there is none
}

func (a answer) String() string {
	switch {
	case a.dead:
		return deadConnection
	case a.cut:
		return fmt.Sprintf("%d, cut", a.status)
	}
	return strconv.Itoa(a.status)
}

// answered is an answer of the proxy itself.
func answered(status int) answer {
	h := http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
	if status == http.StatusTooManyRequests {
		h.Set("Retry-After", "1")
	}
	return answer{status: status, header: h, body: []byte(http.StatusText(status) + "\n")}
}

// half is an answer truncated in the middle. One without a body becomes no answer.
func (a answer) half() answer {
	if len(a.body) == 0 {
		return answer{dead: true}
	}
	a.cut = true
	a.body = a.body[:len(a.body)/2]
	return a
}

func (a answer) writeTo(w http.ResponseWriter) {
	if a.dead {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client may be gone
	if a.cut {
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		panic(http.ErrAbortHandler)
	}
}
