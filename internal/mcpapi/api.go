package mcpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/internal/mcpapi/tool"
)

const (
	// maxMessage bounds one message of a client in bytes: the largest intent plus the rest of the
	// message.
	maxMessage = 1<<20 + 64<<10
	// maxSessions bounds the sessions of one process over HTTP, and maxOwn those of one
	// identity among them, so that one client cannot lock the others out. A session costs
	// some tens of kilobytes.
	maxSessions = 1000
	maxOwn      = 100
	// idle is how long an unused session lives. A model that thinks, and a user who
	// reads, take minutes.
	idle = 30 * time.Minute
	// slack is what a response may take beyond the wait of its call.
	slack = 30 * time.Second
	// codeLimited is the code of JSON-RPC for a request that a limit refuses: the range
	// from -32000 to -32099 is for servers, and the protocol uses none up to here.
	codeLimited = -32029
	// streamTime bounds one stream of a client that only listens; it connects again.
	streamTime = time.Hour
)

// Path is the path of the API over HTTP.
const Path = "/mcp"

// Routes are the HTTP routes, with the permission that each needs. Which tools there are,
// and what they need, depends on the role.
func Routes() []access.Route {
	return []access.Route{
		{Method: http.MethodPost, Pattern: Path, Act: access.Read},
		{Method: http.MethodGet, Pattern: Path, Act: access.Read},
		{Method: http.MethodDelete, Pattern: Path, Act: access.Read},
	}
}

// methods are the acts of [Routes] by method.
func methods() map[string]access.Act {
	all := map[string]access.Act{}
	for _, r := range Routes() {
		all[r.Method] = r.Act
	}
	return all
}

// sessionless is the first version of the protocol without sessions over HTTP: each
// request is independent.
const sessionless = "2026-07-28"

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// APIOptions configures an API. The zero value is valid.
type APIOptions struct {
	// Workflow names the session of stdio. Default random.
	Workflow string
	// Origins are the origins of web pages that may call. Default the server's own.
	Origins []string
	// Hosts are the host names (and ports) under which callers reach it through a proxy
	// on this machine. Default only those of this machine.
	Hosts []string
	// Logger receives what an operator should see. Default nothing.
	Logger *slog.Logger
}

// API serves servers of the protocol over stdio and streamable HTTP, and does what both
// must do for a call: authenticate it, name it, bound it. It is safe for concurrent use.
type API struct {
	server  func(access.Identity) *mcp.Server
	options APIOptions
	known   sync.Map // of *mcp.Server that bind their sessions

	mu       sync.Mutex
	sessions map[string]*Visit       // by the session's id
	opening  map[access.Identity]int // by owner
}

// NewAPI makes an API. server returns the server for a caller: one of a few that are made
// once.
func NewAPI(server func(access.Identity) *mcp.Server, o APIOptions) *API {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &API{server: server, options: o, sessions: map[string]*Visit{}, opening: map[access.Identity]int{}}
}

// HTTP is the API of [Server] over streamable HTTP.
func (s *Server) HTTP(who access.Resolver) http.Handler { return s.api.HTTP(who) }

// Stdio serves one client on standard input and output until it disconnects or ctx ends.
// who is the user that started the process.
func (s *Server) Stdio(ctx context.Context, who access.Identity) error {
	in, out := s.config.In, s.config.Out
	if in == nil {
		in = os.Stdin
	}
	if out == nil {
		out = os.Stdout
	}
	return s.api.Stdio(ctx, who, in, out)
}

// serverFor returns the server for a caller, once it binds its sessions.
func (d *API) serverFor(who access.Identity) *mcp.Server {
	s := d.server(who)
	if _, bound := d.known.LoadOrStore(s, true); !bound {
		s.AddReceivingMiddleware(d.recovering, d.binding, traced)
	}
	return s
}

// recovering responds to a message whose handling panics with an internal error. The SDK
// runs handlers in goroutines of its own, where a panic would end the process.
func (d *API) recovering(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				d.options.Logger.Error("the handling of a message panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: panickedMessage}
			}
		}()
		return next(ctx, method, req)
	}
}

const panickedMessage = "the server failed to handle this message, and its log says why; " +
	"if the message was a call of a tool that writes, it is unknown whether the write was applied"

// binding records the owner of a session before its client learns the session's id.
func (d *API) binding(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		v, ok := VisitOf(ctx)
		session, isServer := req.GetSession().(*mcp.ServerSession)
		if method == "initialize" && ok && isServer && session.ID() != "" && !v.lone {
			d.bind(session, v)
		}
		return next(ctx, method, req)
	}
}

func (d *API) bind(session *mcp.ServerSession, v *Visit) {
	id := session.ID()
	d.mu.Lock()
	_, again := d.sessions[id]
	d.sessions[id] = v
	d.mu.Unlock()
	if again {
		return
	}
	go func() {
		_ = session.Wait() // however it ended
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.sessions, id)
	}()
}

// open reserves a place for a session that is about to be opened.
func (d *API) open(who access.Identity) (done func(), ok bool) {
	who = owner(who)
	d.mu.Lock()
	defer d.mu.Unlock()
	all, own := len(d.sessions), d.opening[who]
	for _, n := range d.opening {
		all += n
	}
	for _, v := range d.sessions {
		if owner(v.Who) == who {
			own++
		}
	}
	if all >= maxSessions || own >= maxOwn {
		return nil, false
	}
	d.opening[who]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.opening[who]--; d.opening[who] == 0 {
			delete(d.opening, who)
		}
	}, true
}

// owns reports whether a session is that of an identity.
func (d *API) owns(id string, who access.Identity) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, there := d.sessions[id]
	return there && owner(v.Who) == owner(who)
}

// owner is an identity without its scope, for comparison: the scope of a token never
// changes, and is another pointer each time the token is read.
func owner(who access.Identity) access.Identity {
	who.Scope = nil
	return who
}

// HTTP is the API over streamable HTTP. Every request is authenticated, and a session
// belongs to the identity that opened it.
func (d *API) HTTP(who access.Resolver) http.Handler {
	choose := func(r *http.Request) *mcp.Server {
		v, ok := VisitOf(r.Context())
		if !ok {
			return nil
		}
		return d.serverFor(v.Who)
	}
	// The API itself checks host names that resolve to this machine.
	stateful := mcp.NewStreamableHTTPHandler(choose, &mcp.StreamableHTTPOptions{
		SessionTimeout: idle, MaxRequestBodyBytes: maxMessage * 2, DisableLocalhostProtection: true, EventStore: newReplays(), Logger: d.options.Logger,
	})
	stateless := mcp.NewStreamableHTTPHandler(choose, &mcp.StreamableHTTPOptions{
		Stateless: true, MaxRequestBodyBytes: maxMessage * 2, DisableLocalhostProtection: true, Logger: d.options.Logger,
	})
	acts := methods()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.origin(r) {
			refuse(w, http.StatusForbidden, "a page of another origin asks for this; it is not served to pages")
			return
		}
		act, known := acts[r.Method]
		if !known {
			w.Header().Set("Allow", "POST, GET, DELETE")
			refuse(w, http.StatusMethodNotAllowed, "want POST, GET or DELETE")
			return
		}
		id, err := who.Resolve(r)
		if err == nil {
			err = id.May(act)
		}
		if err != nil {
			unauthorized(w, err)
			return
		}
		if r.Method == http.MethodGet { // a stream that a client only reads
			if err := access.Stream(r.Context()); err != nil {
				unauthorized(w, err)
				return
			}
		}
		if !d.read(w, r) {
			return
		}
		if r.Header.Get(headerVersion) >= sessionless {
			v := newVisit(id, "mcp-"+rand.Text())
			v.lone = true
			stateless.ServeHTTP(w, r.WithContext(withVisit(r.Context(), v)))
			return
		}
		d.inSession(w, r, id, stateful)
	})
}

// inSession serves a request of a session, or one that opens one.
func (d *API) inSession(w http.ResponseWriter, r *http.Request, who access.Identity, h http.Handler) {
	r = r.WithContext(withVisit(r.Context(), newVisit(who, "")))
	if session := r.Header.Get(headerSession); session != "" {
		// A session of another identity is treated as unknown: the client opens one of
		// its own.
		if len(r.Header.Values(headerSession)) > 1 || !d.owns(session, who) {
			refuse(w, http.StatusNotFound, "session not found; open a new one")
			return
		}
		h.ServeHTTP(w, r)
		return
	}
	done, ok := d.open(who)
	if !ok {
		w.Header().Set("Retry-After", "60")
		refuse(w, http.StatusServiceUnavailable, "too many sessions are open; close one, or try again later")
		return
	}
	defer done()
	h.ServeHTTP(w, r)
}

// read reads the message, within bounds, and marks its calls.
func (d *API) read(w http.ResponseWriter, r *http.Request) bool {
	control := http.NewResponseController(w)
	if r.Method != http.MethodPost {
		_ = control.SetWriteDeadline(time.Now().Add(streamTime)) // where deadlines are supported
		return true
	}
	_ = control.SetWriteDeadline(time.Now().Add(tool.MaxWait + slack))
	body, err := httpapi.ReadBody(w, r, maxMessage)
	switch {
	case errors.Is(err, httpapi.ErrTooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "the message is too long; want at most a megabyte")
		return false
	case err != nil:
		refuse(w, http.StatusBadRequest, "the message could not be read")
		return false
	}
	marked, err := mark(body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return false
	}
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(string(marked))), int64(len(marked))
	return true
}

// origin refuses pages of other origins, and on this machine every request under a
// foreign name that resolves to it.
func (d *API) origin(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && access.IsLocal(local.String()) && !access.IsLocal(r.Host) && !slices.Contains(d.options.Hosts, r.Host) {
		return false
	}
	all := r.Header.Values("Origin")
	if len(all) == 0 {
		return true
	}
	u, err := url.Parse(all[0])
	return err == nil && len(all) == 1 && (u.Host != "" && u.Host == r.Host || slices.Contains(d.options.Origins, all[0]))
}

// limited responds to a caller that has reached a limit, as the protocol requires: an
// error of JSON-RPC without an id, since the message was not read.
func limited(w http.ResponseWriter, err *access.LimitError) {
	status, header := access.Refused(err)
	maps.Copy(w.Header(), header)
	seconds, _ := strconv.Atoi(header.Get("Retry-After"))
	text, failed := json.Marshal(map[string]any{"jsonrpc": "2.0", "error": map[string]any{"code": codeLimited, "message": err.Error(),
		"data": map[string]any{"limit": err.Limit, "setting": err.Setting, "retry_after_seconds": seconds}}})
	if failed != nil {
		return // texts and numbers always marshal
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that disconnected needs no response
}

// unauthorized responds to a caller that is not authenticated.
func unauthorized(w http.ResponseWriter, err error) {
	var limit *access.LimitError
	if errors.As(err, &limit) {
		limited(w, limit)
		return
	}
	status, header := access.Refused(err)
	maps.Copy(w.Header(), header)
	detail := map[int]string{
		http.StatusUnauthorized: "no credentials, or such as are not valid (any more)",
		http.StatusForbidden:    "these credentials may not do this",
	}[status]
	refuse(w, status, cmp.Or(detail, "it cannot be found out now who asks; try again later"))
}

// refuse responds to a request that is refused before the protocol.
func refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Cache-Control", "no-store")
	access.Problem(w, status, detail)
}
