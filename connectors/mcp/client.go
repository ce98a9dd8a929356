package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/declared"
)

const (
	// handshake bounds the start of a session: servers that are fetched at their
	// start take long.
	handshake = 2 * time.Minute
	// firstPause and longestPause are between two failed starts. The first failure alone causes
	// no wait.
	firstPause   = 200 * time.Millisecond
	longestPause = 30 * time.Second
)

// Client holds a session with a server and begins another when it has ended:
// the process died, the connection was cut. It repeats no call. It is safe for
// concurrent use.
type Client struct {
	server Server
	log    *slog.Logger
	// life ends when the client is closed.
	life context.Context
	end  context.CancelFunc

	mu        sync.Mutex
	current   *session
	starting  *start
	failures  int
	notBefore time.Time
	last      error // why the last start failed
	closed    bool
	changed   []func(Change)
	pending   map[Change]bool // changes whose functions have not begun to run
	progress  map[string]chan<- *sdk.ProgressNotificationParams
	calls     int
	listening map[caller]map[Log]int // the calls that are under way
	level     sdk.LoggingLevel       // of the log messages that the server is to send, "" if none was requested
}

// session is one session.
type session struct {
	cs   *sdk.ClientSession
	dead chan struct{}

	// listing is held by the caller that lists the tools.
	listing chan struct{}
	mu      sync.Mutex
	tools   []*sdk.Tool
	asOf    time.Time // zero: not known, or no longer

	callers callers
}

// Change is a list of the server that has changed.
type Change string

// The lists.
const (
	ToolsChanged     Change = "tools"
	PromptsChanged   Change = "prompts"
	ResourcesChanged Change = "resources"
)

// NewClient makes a client. Nothing is started until it is needed. log may be nil. The error
// names what is wrong in the server's settings.
func NewClient(s Server, log *slog.Logger) (*Client, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s.masks = &declared.Masks{}
	c := &Client{server: s, log: log, pending: map[Change]bool{}, listening: map[caller]map[Log]int{}, progress: map[string]chan<- *sdk.ProgressNotificationParams{}}
	c.life, c.end = context.WithCancel(context.Background())
	return c, nil
}

// OnChange adds a function that is called, from a goroutine of the session, when the server
// reports that a list has changed, and for each list that it has when a session begins. Of
// reports that come faster than the function returns some are left out, never the last.
func (c *Client) OnChange(f func(Change)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = append(c.changed, f)
}

// Close ends the session and, where it runs on a process of ours, the process.
func (c *Client) Close() error {
	c.mu.Lock()
	s := c.current
	c.current, c.closed = nil, true
	c.mu.Unlock()
	c.end()
	if s == nil {
		return nil
	}
	return ended(s.cs.Close())
}

// ended drops errors that only report the end of a session.
func ended(err error) error {
	if errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, sdk.ErrSessionMissing) {
		return nil
	}
	return err
}

// Session returns the session, and begins one if there is none. The error wraps [ErrUnreachable];
// no tool was called then.
func (c *Client) Session(ctx context.Context) (*sdk.ClientSession, error) {
	s, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	c.calling(ctx, s)
	return s.cs, nil
}

func (c *Client) session(ctx context.Context) (*session, error) {
	s, st, err := c.living(ctx)
	if st == nil {
		return s, err
	}
	select {
	case <-st.done:
		return st.s, st.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: it is still starting: %w", ErrUnreachable, ctx.Err())
	}
}

// pause grows with every start that failed.
func pause(failures int) time.Duration {
	p := firstPause
	for range failures - 2 {
		if p *= 2; p >= longestPause {
			return longestPause
		}
	}
	return p
}

// start is a session that begins. It continues when its caller has run out of time: the next
// caller uses it.
type start struct {
	done chan struct{}
	s    *session
	err  error
}

// living is the open session, or the start of one. The error means that none may be begun now.
func (c *Client) living(ctx context.Context) (*session, *start, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, fmt.Errorf("%w: closed", ErrUnreachable)
	}
	if s := c.current; s != nil {
		select {
		case <-s.dead:
			c.current = nil
		default:
			return s, nil, nil
		}
	}
	if c.starting != nil {
		return nil, c.starting, nil
	}
	if wait := time.Until(c.notBefore); wait > 0 {
		return nil, nil, fmt.Errorf("%w: it failed to start %d times; not tried again for %s: %w", ErrUnreachable, c.failures, wait.Round(time.Millisecond), c.last)
	}
	c.starting = &start{done: make(chan struct{})}
	go c.begin(context.WithoutCancel(ctx), c.starting)
	return nil, c.starting, nil
}

// begin starts a session and notifies the waiting callers.
func (c *Client) begin(ctx context.Context, st *start) {
	s, err := c.open(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(st.done)
	c.starting = nil
	if err == nil && c.closed {
		go func() { _ = s.cs.Close() }()
		err = errors.New("closed")
	}
	if err != nil {
		st.err = fmt.Errorf("%w: %w", ErrUnreachable, err)
		c.failures++
		c.last = err
		if c.failures > 1 {
			c.notBefore = time.Now().Add(pause(c.failures))
		}
		return
	}
	c.failures, c.notBefore, c.last = 0, time.Time{}, nil
	c.current, st.s = s, s
	for what, has := range s.lists() {
		if has {
			c.notify(what, "a new session")
		}
	}
}

// lists are the lists that the server has.
func (s *session) lists() map[Change]bool {
	r := s.cs.InitializeResult()
	has := r != nil && r.Capabilities != nil
	return map[Change]bool{ToolsChanged: true, PromptsChanged: has && r.Capabilities.Prompts != nil, ResourcesChanged: has && r.Capabilities.Resources != nil}
}

// open opens a session, within a bound of its own. A connection that hangs is
// left to itself: ending it may take as long.
func (c *Client) open(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	ctx, m := marked(ctx)
	t, err := c.server.transport(ctx)
	if err != nil {
		return nil, err
	}
	type result struct {
		cs  *sdk.ClientSession
		err error
	}
	done := make(chan result)
	go func() {
		cs, err := c.client().Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: c.protocol()})
		select {
		case done <- result{cs, err}:
		case <-ctx.Done():
			if err == nil {
				_ = cs.Close() // no caller waits for it any more
			}
		}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, m.login(r.err)
		}
		s := &session{cs: r.cs, dead: make(chan struct{}), listing: make(chan struct{}, 1), callers: callers{queue: make(chan logged, queued)}}
		go c.watchOver(s)
		go s.callers.deliver(c, s.dead)
		c.mu.Lock()
		level := c.level
		c.mu.Unlock()
		if level != "" {
			_ = s.setLevel(ctx, level) // a server that refuses sends none
		}
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Client) protocol() string {
	if c.server.Protocol != "" {
		return c.server.Protocol
	}
	return defaultProtocol
}

// watchOver waits for the end of a session, and clears up after it.
func (c *Client) watchOver(s *session) {
	err := s.cs.Wait()
	close(s.dead)
	c.log.Info("a session with a server has ended", "error", ended(err))
	_ = s.cs.Close() // reaps the process
}

// drop gives a session up, so that the next call begins another.
func (c *Client) drop(s *session) {
	c.mu.Lock()
	if c.current == s {
		c.current = nil
	}
	c.mu.Unlock()
	go func() { _ = s.cs.Close() }()
}

// client makes the SDK's client. It offers the server nothing: no sampling, no elicitation, no
// roots. It repeats no call by itself.
func (c *Client) client() *sdk.Client {
	client := sdk.NewClient(&sdk.Implementation{Name: "readback", Version: "1"}, &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{},
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { c.toolsChanged() },
		PromptListChangedHandler:    func(context.Context, *sdk.PromptListChangedRequest) { c.listChanged(PromptsChanged) },
		ResourceListChangedHandler:  func(context.Context, *sdk.ResourceListChangedRequest) { c.listChanged(ResourcesChanged) },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.onProgress(r.Params) },
		LoggingMessageHandler:       func(_ context.Context, r *sdk.LoggingMessageRequest) { c.onLog(r) },
		Logger:                      slog.New(slog.DiscardHandler),
	})
	client.AddReceivingMiddleware(c.recovering)
	return client
}

func (c *Client) toolsChanged() {
	c.mu.Lock()
	s := c.current
	c.mu.Unlock()
	if s != nil {
		s.forget()
	}
	c.listChanged(ToolsChanged)
}

func (c *Client) listChanged(what Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notify(what, "a changed list of "+string(what))
}

// notify calls the functions of [Client.OnChange], unless they are about to be called: a
// server may report a change as often as it likes.
func (c *Client) notify(what Change, because string) {
	if c.pending[what] || len(c.changed) == 0 {
		return
	}
	c.pending[what] = true
	go c.recovered(because, func() {
		c.mu.Lock()
		delete(c.pending, what)
		all := slices.Clone(c.changed)
		c.mu.Unlock()
		for _, f := range all {
			f(what)
		}
	})
}

// recovered runs what handles a message of the server, in a goroutine where a panic
// would end the process. It reports whether f panicked, and logs that.
func (c *Client) recovered(what string, f func()) (panicked bool) {
	defer func() {
		if p := recover(); p != nil {
			panicked = true
			c.log.Error("the handling of a message of a server panicked", "message", what, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	f()
	return false
}

// recovering is [Client.recovered] for what the SDK handles.
func (c *Client) recovering(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		if c.recovered(method, func() { res, err = next(ctx, method, req) }) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the client failed to handle this message"}
		}
		return res, err
	}
}

// onProgress hands progress to the call that it is about. A caller that is slow to take it
// misses some: it must not hold up the messages for others.
func (c *Client) onProgress(p *sdk.ProgressNotificationParams) {
	if p == nil {
		return
	}
	token, _ := p.ProgressToken.(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.progress[token] <- p: // nil, for a call that is over or never was
	default:
	}
}

// Gone waits until the session that there is has ended; nil at once where there
// is none. It is for tests of what happens then.
func (c *Client) Gone(ctx context.Context) error {
	c.mu.Lock()
	s := c.current
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	select {
	case <-s.dead:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
