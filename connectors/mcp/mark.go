package mcp

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
)

// maxBody is how many bytes of one HTTP response are read: the SDK reads a JSON answer whole,
// however long. On standard streams the SDK has its own limit of 16 MB.
const maxBody = 16 << 20

// mark records what became of the message of one call, to distinguish a failure before it left us
// from one after.
type mark struct {
	// sent means that a byte of it may have left us.
	sent atomic.Bool
	// status is the HTTP status of the response, 0 for none; header belongs to it.
	status atomic.Int64
	header atomic.Pointer[http.Header]
}

// login is the error of a message that belongs to no write: a 401 or 403 is a refused login. For
// a call, a 403 may concern the write alone; see [Client.failed].
func (m *mark) login(err error) error {
	if status := m.status.Load(); err != nil && (status == http.StatusUnauthorized || status == http.StatusForbidden) {
		return connectors.LoginRefused(strconv.FormatInt(status, 10), err)
	}
	return err
}

type markKey struct{}

func marked(ctx context.Context) (context.Context, *mark) {
	m := &mark{}
	return context.WithValue(ctx, markKey{}, m), m
}

func markOf(ctx context.Context) *mark {
	m, _ := ctx.Value(markKey{}).(*mark)
	return m
}

// watched is a transport whose connection marks what is written. It is for streams; [watch] does
// the same for HTTP.
type watched struct{ inner sdk.Transport }

// Connect implements the SDK's interface.
func (t watched) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return watchedConn{c}, nil
}

type watchedConn struct{ sdk.Connection }

// Write marks the message before its first byte goes.
func (c watchedConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if mark := markOf(ctx); mark != nil && isCall(m) {
		mark.sent.Store(true)
	}
	return c.Connection.Write(ctx, m)
}

// isCall distinguishes a call of a tool from related messages, such as a cancellation.
func isCall(m jsonrpc.Message) bool {
	r, ok := m.(*jsonrpc.Request)
	return ok && r.IsCall()
}

// watch is a round tripper that adds headers and marks what is sent.
type watch struct {
	inner   http.RoundTripper
	headers func(context.Context) (http.Header, error)
}

// RoundTrip sends once: net/http repeats only a request of which nothing was
// written.
func (w watch) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, m := r.Context(), markOf(r.Context())
	if m != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			WroteHeaderField: func(string, []string) { m.sent.Store(true) },
			WroteHeaders:     func() { m.sent.Store(true) },
		})
	}
	connectors.TraceServer(ctx, r.URL)
	r = r.Clone(ctx)
	if w.headers != nil {
		more, err := w.headers(ctx)
		if err != nil {
			return nil, err
		}
		for name, values := range more {
			r.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	resp, err := w.inner.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxBody)
		resp.Body = wrappedBody(resp)
	}
	if err == nil && m != nil {
		m.sent.Store(true)
		m.header.Store(&resp.Header)
		m.status.Store(int64(resp.StatusCode))
	}
	return resp, err
}
