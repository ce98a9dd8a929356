package httpsend

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/connectors"
)

const (
	// DefaultMaxBody is how many bytes of an answer are read. A record and a page of records fit
	// in it many times over. An endless stream from a destination (or a server in its place) must
	// not fill our memory.
	DefaultMaxBody = 4 << 20
	// DefaultTimeout limits a call whose context has no deadline, since a destination that hangs
	// must not hold a worker for ever. It is the default send timeout of a profile.
	DefaultTimeout = 30 * time.Second
	// MaxIdleConns is how many idle connections to one host the default
	// transport keeps. A worker carries 64 writes at once; of fewer connections
	// the rest would be closed after each call and dialled anew, with a new
	// handshake, for each send and each read. They are closed when unused for as
	// long as net/http does by default.
	MaxIdleConns = 64
)

// Errors of an answer that arrived and cannot be used whole.
var (
	// ErrTooLong means that the body is longer than Options.MaxBody.
	ErrTooLong = errors.New("the body of the answer is too long")
	// errNotJSON means that the body is not exactly one JSON value of the expected form.
	errNotJSON = errors.New("the body of the answer is not the JSON that was expected")
)

// Options are the choices of a [Client]. The zero value works.
type Options struct {
	// Transport carries the requests. It should report its connections to
	// net/http/httptrace, as [http.Transport] does; without that, no failure
	// counts as proof that nothing was sent. Default: an http.Transport of
	// the client's own, which keeps [MaxIdleConns] to a host.
	Transport http.RoundTripper
	// MaxBody is how many bytes of an answer are read. Default
	// [DefaultMaxBody].
	MaxBody int64
	// Timeout limits calls whose context has no deadline. Default [DefaultTimeout].
	Timeout time.Duration
	// NoTrace keeps the trace that a request belongs to from the destination.
	// Default false: it gets the header traceparent, and nothing else of it.
	NoTrace bool
}

// Client sends requests once. It is safe for concurrent use.
type Client struct {
	http    *http.Client
	maxBody int64
	timeout time.Duration
	noTrace bool
}

// New makes a client; o may be nil.
func New(o *Options) *Client {
	if o == nil {
		o = &Options{}
	}
	c := &Client{maxBody: o.MaxBody, timeout: o.Timeout, noTrace: o.NoTrace}
	if c.maxBody <= 0 {
		c.maxBody = DefaultMaxBody
	}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	transport := o.Transport
	if transport == nil {
		transport = NewTransport(nil, nil)
	}
	c.http = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// NewTransport is the transport of a client by default: that of net/http, but that it
// keeps more connections to one host. It connects with dial, and then uses no proxy,
// which would connect in its place; nil for a plain connection. config is what TLS
// begins with, nil for the system's.
func NewTransport(dial func(ctx context.Context, network, address string) (net.Conn, error), config *tls.Config) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = MaxIdleConns
	if dial != nil {
		t.Proxy, t.DialContext, t.DialTLSContext = nil, dial, nil
	}
	if config != nil {
		t.TLSClientConfig = config.Clone()
	}
	return t
}

// Answer is an HTTP response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// BodyErr is why the body is not whole: [ErrTooLong], or the error that cut it. The status is
	// valid all the same.
	BodyErr error
}

// Code is the status as receipts and errors carry it, "201".
func (a Answer) Code() string { return fmt.Sprint(a.Status) }

// Decode decodes a body that is one JSON value. Numbers that go into an any
// stay exact ([json.Number]). The error says that it is not, or why the
// body is not whole.
func (a Answer) Decode(v any) error {
	if a.BodyErr != nil {
		return a.BodyErr
	}
	d := json.NewDecoder(bytes.NewReader(a.Body))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", errNotJSON, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%w: something follows the value", errNotJSON)
	}
	return nil
}

// Write sends a write, at most once. Its error is what is known ([connectors.FateOf]). A nil
// error means a 2xx status, even when the body is cut, too long or unreadable: the destination
// accepted, and the body does not change that. With an error the answer is set as far as one
// arrived.
//
// Errors contain neither the URL nor the body: both may contain what must not be stored.
func (c *Client) Write(req *http.Request) (Answer, error) {
	once(req)
	a, err := c.do(req)
	if err != nil {
		return a, err
	}
	return a, Classify(a.Status, a.Header, time.Now())
}

// Read sends a read. A nil error means status 200 and a whole body. Anything else, including
// another 2xx, is an error, since an unreadable record must not be mistaken for an absent one.
// Errors of a 401, 403, 429 and the like are of the kinds that [Classify] returns.
func (c *Client) Read(req *http.Request) (Answer, error) {
	req.Header.Set("Cache-Control", "no-cache")
	a, err := c.do(req)
	if err != nil {
		return a, err
	}
	if a.Status == http.StatusOK {
		return a, a.BodyErr
	}
	if err := Classify(a.Status, a.Header, time.Now()); err != nil {
		return a, err
	}
	return a, fmt.Errorf("a read was answered with %d, want 200", a.Status)
}

// once keeps net/http from sending a request a second time that may have arrived: it considers
// one with an idempotency key repeatable, if it can rewind the body. Other requests are not
// changed, since net/http repeats those only if provably nothing was written, which avoids a send
// of unknown fate.
func once(req *http.Request) {
	_, key := req.Header["Idempotency-Key"]
	_, xKey := req.Header["X-Idempotency-Key"]
	if !key && !xKey {
		return
	}
	req.GetBody = nil
	if req.Body == nil || req.Body == http.NoBody {
		req.Body = io.NopCloser(bytes.NewReader(nil))
		req.ContentLength = 0
	}
}

func (c *Client) do(req *http.Request) (Answer, error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return Answer{}, connectors.NotSent(err)
	}
	connectors.Called(ctx)
	connectors.TraceServer(ctx, req.URL)
	if !c.noTrace {
		traced(req)
	}
	if _, ok := ctx.Deadline(); !ok {
		bounded, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		ctx = bounded
	}
	var seen connection
	res, err := c.http.Do(req.WithContext(seen.watch(ctx))) //nolint:bodyclose // take closes it
	if err != nil {
		return Answer{}, seen.explain(err)
	}
	return c.take(res), nil
}

func (c *Client) take(res *http.Response) Answer {
	defer func() { _ = res.Body.Close() }() // it was read, or is not wanted
	a := Answer{Status: res.StatusCode, Header: res.Header}
	a.Body, a.BodyErr = io.ReadAll(io.LimitReader(res.Body, c.maxBody+1))
	if a.BodyErr == nil && int64(len(a.Body)) > c.maxBody {
		a.BodyErr = ErrTooLong
	}
	a.Body = a.Body[:min(int64(len(a.Body)), c.maxBody)]
	return a
}

// connection records whether the transport requested a connection and whether it ever had one.
// Without one, no byte of the request can have left us.
type connection struct{ wanted, had atomic.Bool }

func (s *connection) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { s.wanted.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.had.Store(true) },
	})
}

func (s *connection) explain(err error) error {
	// The outer error repeats the URL with its query.
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if s.wanted.Load() && !s.had.Load() {
		return connectors.NotSent(err)
	}
	return &connectors.Error{Err: fmt.Errorf("no answer: %w", &quiet{err})}
}

// quiet is an error whose text is shown only if it is the network's. net/http quotes what it
// cannot parse, and an echo contains our own request.
type quiet struct{ err error }

func (e *quiet) Unwrap() error { return e.err }

func (e *quiet) Error() string {
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(e.err, known) {
			return known.Error()
		}
	}
	var broke *net.OpError
	if errors.As(e.err, &broke) {
		return broke.Error()
	}
	return "the connection was lost, or what came back is not HTTP"
}
