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
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/mcpapi/tool"
)

// Path is where the door stands over HTTP.
const Path = "/mcp"

// Routes is what can be asked over HTTP, and what it takes. Which tools there
// are, and what they take, depends on the role.
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

// sessionless is the first version of the protocol that has no sessions over
// HTTP: each request stands alone.
const sessionless = "2026-07-28"

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// DoorOptions are what a door can be told. The zero value works.
type DoorOptions struct {
	// Workflow names the session of stdio. Default random.
	Workflow string
	// Origins are those of web pages that may ask. Default the server's own.
	Origins []string
	// Hosts are the names (and ports) under which callers reach it through a proxy
	// on this machine. Default none but those of this machine.
	Hosts []string
	// Logger receives what an operator should see. Default nothing.
	Logger *slog.Logger
}

// Door is stdio and streamable HTTP in front of servers of the protocol, with
// everything that both must do for a call: say whose it is, name it, bound it. It
// is safe for concurrent use.
type Door struct {
	server  func(access.Identity) *mcp.Server
	options DoorOptions
	known   sync.Map // of *mcp.Server that bind their sessions

	mu       sync.Mutex
	sessions map[string]*Visit // by the session's id
	opening  map[access.Identity]int
}

// NewDoor makes a door. server says which server somebody meets: one of a few that
// are made once.
func NewDoor(server func(access.Identity) *mcp.Server, o DoorOptions) *Door {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Door{server: server, options: o, sessions: map[string]*Visit{}, opening: map[access.Identity]int{}}
}

// HTTP is the door of [Server] over streamable HTTP.
func (s *Server) HTTP(who access.Resolver) http.Handler { return s.door.HTTP(who) }

// Stdio serves one client on standard input and output until it has gone or ctx
// ends. Whoever started the process is who.
func (s *Server) Stdio(ctx context.Context, who access.Identity) error {
	in, out := s.config.In, s.config.Out
	if in == nil {
		in = os.Stdin
	}
	if out == nil {
		out = os.Stdout
	}
	return s.door.Stdio(ctx, who, in, out)
}

// servers gives the server that somebody meets, once it binds its sessions.
func (d *Door) serverFor(who access.Identity) *mcp.Server {
	s := d.server(who)
	if _, bound := d.known.LoadOrStore(s, true); !bound {
		s.AddReceivingMiddleware(d.recovering, d.binding, traced)
	}
	return s
}

// recovering answers a message whose handling panics with an internal error. The
// SDK runs handlers in goroutines of its own, where a panic would end the process.
func (d *Door) recovering(next mcp.MethodHandler) mcp.MethodHandler {
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

// binding notes whose a session is before its client hears of it.
func (d *Door) binding(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		v, ok := VisitOf(ctx)
		session, isServer := req.GetSession().(*mcp.ServerSession)
		if method == "initialize" && ok && isServer && session.ID() != "" && !v.lone {
			d.bind(session, v)
		}
		return next(ctx, method, req)
	}
}

func (d *Door) bind(session *mcp.ServerSession, v *Visit) {
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

// open takes a place for a session that is about to be opened.
func (d *Door) open(who access.Identity) (done func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, own := len(d.sessions), d.opening[who]
	for _, n := range d.opening {
		all += n
	}
	for _, v := range d.sessions {
		if v.Who == who {
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
func (d *Door) owns(id string, who access.Identity) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, there := d.sessions[id]
	return there && v.Who == who
}

// HTTP is the door over streamable HTTP. Every request is asked for its
// credentials, and a session belongs to those that opened it.
func (d *Door) HTTP(who access.Resolver) http.Handler {
	choose := func(r *http.Request) *mcp.Server {
		v, ok := VisitOf(r.Context())
		if !ok {
			return nil
		}
		return d.serverFor(v.Who)
	}
	// The door itself looks at names that point at this machine.
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
func (d *Door) inSession(w http.ResponseWriter, r *http.Request, who access.Identity, h http.Handler) {
	r = r.WithContext(withVisit(r.Context(), newVisit(who, "")))
	if session := r.Header.Get(headerSession); session != "" {
		// Another one's session is like none: the client opens one of its own.
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

// read takes the message, within bounds, and marks its calls.
func (d *Door) read(w http.ResponseWriter, r *http.Request) bool {
	control := http.NewResponseController(w)
	if r.Method != http.MethodPost {
		_ = control.SetWriteDeadline(time.Now().Add(streamTime)) // where it can be set
		return true
	}
	_ = control.SetWriteDeadline(time.Now().Add(tool.MaxWait + slack))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
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

// origin refuses pages of other origins, and on this machine everything that
// comes under a name which a stranger has made point here.
func (d *Door) origin(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && loopback(local.String()) && !loopback(r.Host) && !slices.Contains(d.options.Hosts, r.Host) {
		return false
	}
	all := r.Header.Values("Origin")
	if len(all) == 0 {
		return true
	}
	u, err := url.Parse(all[0])
	return err == nil && len(all) == 1 && (u.Host != "" && u.Host == r.Host || slices.Contains(d.options.Origins, all[0]))
}

func loopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// unauthorized answers somebody who may not come in.
func unauthorized(w http.ResponseWriter, err error) {
	status, header := access.Refused(err)
	maps.Copy(w.Header(), header)
	detail := map[int]string{
		http.StatusUnauthorized: "no credentials, or such as are not valid (any more)",
		http.StatusForbidden:    "these credentials may not do this",
	}[status]
	refuse(w, status, cmp.Or(detail, "it cannot be found out now who asks; try again later"))
}

// refuse answers what never reaches the protocol.
func refuse(w http.ResponseWriter, status int, detail string) {
	text, err := json.Marshal(map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail})
	if err != nil {
		return // strings and a number alone
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that has gone hears nothing
}
