// Package wire carries HTTP requests to a handler in the same process, the way
// a connection would that can break: the fakes of destinations use it, so that
// whatever waits can be tested in a testing/synctest bubble.
//
// It knows nothing of what is carried. It has no timing of its own: a handler
// that waits makes the caller wait.
package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"syscall"
)

// Transport carries requests to h. What would happen on a connection comes out
// as the same kind of error: a refused dial where dial reports false, an answer
// that never came or a body that was cut where the handler panics with
// [http.ErrAbortHandler] before or after it wrote the header, the client's own
// deadline where the handler outlives it. A handler that must not answer waits
// for the context of its request. dial may be nil.
//
// It starts no goroutine, so a synctest bubble sees all of it.
func Transport(h http.Handler, dial func(*http.Request) bool) http.RoundTripper {
	return &transport{handler: h, dial: dial}
}

type transport struct {
	handler http.Handler
	dial    func(*http.Request) bool
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }() // a body in memory
	}
	ctx := r.Context()
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.GetConn != nil {
		trace.GetConn(r.URL.Host)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if t.dial != nil && !t.dial(r) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	res, err := Answer(t.handler, r)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return res, err
}

// Answer is what a handler answers to a request, also if the client's context ended before. A
// handler that then wrote nothing has not answered.
func Answer(h http.Handler, r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	if in.Body == nil {
		in.Body = http.NoBody
	}
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	rec := &recorder{header: http.Header{}}
	whole := serve(h, rec, in)
	if rec.status == 0 && (!whole || in.Context().Err() != nil) {
		return nil, errCut
	}
	return rec.response(r, whole), nil
}

var errCut = errors.New("connection cut before an answer came")

// serve reports whether the handler came to its end.
func serve(h http.Handler, rec *recorder, r *http.Request) (whole bool) {
	defer func() {
		if p := recover(); p != nil && p != any(http.ErrAbortHandler) { // the very value
			panic(p)
		}
	}()
	h.ServeHTTP(rec, r)
	return true
}

type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK { // 100 and 103 come before the answer
		r.status = status
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

func (r *recorder) response(req *http.Request, whole bool) *http.Response {
	r.WriteHeader(http.StatusOK)
	var body io.Reader = &r.body
	if !whole {
		body = io.MultiReader(&r.body, failing{})
	}
	length, err := strconv.ParseInt(r.header.Get("Content-Length"), 10, 64)
	if err != nil {
		length = -1
	}
	return &http.Response{
		Status: http.StatusText(r.status), StatusCode: r.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: r.header, ContentLength: length,
		Body: io.NopCloser(body), Request: req,
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
