package readbacktest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/readback-go/readback/internal/chaos"
)

// Proxy runs before an HTTP API, in the same process. Requests come over [Proxy.Transport], or
// over [Proxy.URL]. Bodies are kept in memory whole; answers are not streamed. It has the methods
// of [Log].
type Proxy struct {
	*Log
	proxy  *chaos.Proxy
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
	p := chaos.NewProxy(target, checked(tb, o))
	return &Proxy{Log: newLog(tb, p.Log), proxy: p}
}

// Forward is a remote target: the server at a base URL. An unreachable server looks like a dead
// connection.
func Forward(base *url.URL) http.Handler { return chaos.Forward(base) }

// Transport returns a transport that sends requests to the target, whatever host they name. It
// uses no network and starts no goroutine, so it works in a testing/synctest bubble.
func (p *Proxy) Transport() http.RoundTripper { return p.proxy.Transport() }

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
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.proxy.ServeHTTP(w, r) }
