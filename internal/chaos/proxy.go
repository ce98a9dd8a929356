package chaos

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/wire"
	"github.com/readback-go/readback/readbacktest/fault"
)

// maxBody bounds the body of a request or an answer, which is kept in memory: tests send far
// less.
const maxBody = 16 << 20

// Proxy runs before an HTTP API, as a handler or as a transport. Bodies are kept in memory whole;
// answers are not streamed.
type Proxy struct {
	*Log
	target, phantom http.Handler
	past            Past[answer]
}

// NewProxy returns a proxy before a target: a handler, or [Forward]. The options are checked.
func NewProxy(target http.Handler, o Options) *Proxy {
	log := NewLog(o)
	p := &Proxy{Log: log, target: target, phantom: o.Phantom, past: Past[answer]{Log: log}}
	for _, r := range o.Watch {
		p.know(r, nil)
	}
	return p
}

// Forward is a remote target: the server at a base URL. An unreachable server looks like a dead
// connection.
func Forward(base *url.URL) http.Handler {
	// Connections are used once: net/http repeats by itself a request that a kept connection may
	// have lost, and no connection outlives the request. Nor does it ask for another encoding than
	// the client did.
	return ForwardBy(base, &http.Transport{DisableKeepAlives: true, DisableCompression: true})
}

// ForwardBy is a remote target that a transport reaches.
func ForwardBy(base *url.URL, by http.RoundTripper) http.Handler {
	to := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(base)
			r.Out.Header.Del("Connection") // a client may offer another protocol, such as h2c, and a target accept it
			r.Out.Header.Del("Upgrade")
		},
		// A client that follows a redirect stays with the proxy.
		ModifyResponse: func(r *http.Response) error {
			s, ok := r.Request.Context().Value(sendingKey{}).(*sending)
			at, err := url.Parse(r.Header.Get("Location"))
			if ok && err == nil && at.Scheme == base.Scheme && at.Host == base.Host {
				at.Scheme, at.Host, at.Path = s.scheme, s.host, strings.TrimPrefix(at.Path, strings.TrimSuffix(base.Path, "/"))
				r.Header.Set("Location", at.String())
			}
			return nil
		},
		Transport: by,
		ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // the client sees it
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			var dial *net.OpError
			if s, ok := r.Context().Value(sendingKey{}).(*sending); ok && errors.As(err, &dial) && dial.Op == "dial" {
				s.unsent = true
			}
			panic(http.ErrAbortHandler)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if s, ok := ctx.Value(sendingKey{}).(*sending); ok && s.write {
			var end context.CancelFunc
			ctx, end = context.WithCancel(context.WithoutCancel(ctx))
			defer end()
			defer context.AfterFunc(r.Context(), func() { time.AfterFunc(Grace, end) })()
		}
		// As for requests of a server: pass on a truncated answer as truncated.
		to.ServeHTTP(w, r.WithContext(context.WithValue(ctx, http.ServerContextKey, &http.Server{})))
	})
}

// sending is one request of a [Proxy] to its target, in its context. A write is not cut when its
// client gives up: whether it has an effect would be unknown.
type sending struct {
	write, unsent bool
	scheme, host  string // of the proxy, as its client knows it
}

type sendingKey struct{}

// Transport returns a transport that sends requests to the target, whatever host they name. It
// uses no network and starts no goroutine, so it works in a testing/synctest bubble.
func (p *Proxy) Transport() http.RoundTripper {
	return wire.Transport(p, func(r *http.Request) bool {
		if p.faults.Left(fault.Unreachable) == 0 {
			return true
		}
		var body []byte
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body) // it is in memory
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		o := p.Options
		return !p.Meets(fault.Request{Op: fault.Op(r.Method + " " + r.URL.Path), Write: o.IsWrite(with(r, body)), Key: o.Key(with(r, body)), Body: body}, fault.Unreachable)
	})
}

// ServeHTTP implements [http.Handler].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		http.Error(w, "readback: a proxy keeps bodies whole, and carries no web sockets", http.StatusNotImplemented)
		return
	case r.Method == http.MethodGet && r.Header.Get("Accept") == "text/event-stream": // a client of the Model Context Protocol does without after this status
		http.Error(w, "readback: a proxy keeps bodies whole, and carries no streams of events", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "readback: the body cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	again := func() *http.Request { return with(r, body) }
	c, f := p.Begin(Call{
		Write: p.Options.IsWrite(again()), What: r.Method + " " + r.URL.Path, Key: p.Options.Key(again()), Body: body,
	})
	if !c.Write {
		p.know(r, body)
	}
	if f.Kind == fault.DroppedField || f.Kind == fault.NormalisedField {
		if body, err = altered(f.Kind, body, cmp.Or(f.Field, p.Options.Field)); err != nil {
			p.Unharmed(c, err.Error())
		}
	}
	Carry(r.Context(), p.Log, c, f, Way[answer]{
		Send: func(ctx context.Context) (answer, Arrival) {
			if c.Write {
				p.past.Keep(context.WithoutCancel(ctx), p.Now())
			}
			a := p.send(ctx, p.target, r, body)
			if a.unsent {
				return a, Arrival{}
			}
			return a, Arrival{Answer: a.String(), Done: a.status/100 == 2, Unknown: a.dead}
		},
		Dead:    answer{dead: true},
		Status:  answered,
		Half:    func(a answer) (answer, string) { a = a.half(); return a, a.String() },
		Phantom: func() (answer, string) { a := p.send(r.Context(), p.phantom, r, body); return a, a.String() },
		Old:     func(f fault.Fault) (answer, bool) { return p.past.Lagging(question(r, body), c, f) },
	}).writeTo(w)
}

// with is a request with its body from the beginning.
func with(r *http.Request, body []byte) *http.Request {
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	again.ContentLength = int64(len(body))
	return again
}

// send carries a request to the target, or to its stand-in for false successes. It returns the
// answer also if the client has gone: the effect is there.
func (p *Proxy) send(ctx context.Context, to http.Handler, r *http.Request, body []byte) answer {
	if ctx.Err() != nil {
		return answer{dead: true, unsent: true}
	}
	s := &sending{write: p.Options.IsWrite(with(r, body)), scheme: cmp.Or(r.URL.Scheme, "http"), host: r.Host}
	out := with(r, body).WithContext(context.WithValue(ctx, sendingKey{}, s))
	if out.URL.Host == "" {
		out.URL.Host = r.Host
	}
	res, err := wire.Answer(to, out)
	if err != nil {
		return answer{dead: true, unsent: s.unsent}
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
func altered(k fault.Kind, body []byte, field string) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var whole any
	if err := d.Decode(&whole); err != nil {
		return body, errors.New("the body is no JSON")
	}
	done, changed := false, k == fault.DroppedField
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
					changed = changed || v[name] != e
				case json.Number:
					n, _ := e.Float64()
					v[name], changed = n+1, true
				}
				if k == fault.DroppedField {
					delete(v, name)
				}
			}
		}
	}
	walk(whole)
	if !done {
		return body, fmt.Errorf("the body has no field %q (Options.Field, or the fault's)", field)
	}
	if !changed {
		return body, fmt.Errorf("the field %q has no other form: it is neither a number nor a text with small letters", field)
	}
	return json.Marshal(whole)
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
	p.past.Know(question(r, body), func(ctx context.Context) answer { return p.send(ctx, p.target, r, body) })
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
	unsent bool // and the target got no request
}

func (a answer) String() string {
	switch {
	case a.dead:
		return DeadConnection
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
