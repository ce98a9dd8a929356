package simulated

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

// Transport carries requests to a world without a network. What would happen
// on a connection comes out as the same kind of error: a refused dial, an
// answer that never came, a body that was cut, the client's own deadline. It
// starts no goroutine, so a synctest bubble sees all of it.
func Transport(w *World) http.RoundTripper {
	return &transport{world: w, handler: Handler(w)}
}

type transport struct {
	world   *World
	handler http.Handler
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
	if !t.world.dial(opOf(r)) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	in := r.Clone(ctx)
	in.RequestURI = r.URL.RequestURI()
	if in.Body == nil {
		in.Body = http.NoBody
	}
	rec := &recorder{header: http.Header{}}
	whole := serve(t.handler, rec, in)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !whole && rec.status == 0 {
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
	if r.status == 0 {
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
