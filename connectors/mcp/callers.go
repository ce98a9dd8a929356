package mcp

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// queued is how many messages of a server wait for one that takes them; further ones
	// are left out. A server sends a few at once.
	queued = 64
	// logTime bounds how long one takes a log message.
	logTime = 10 * time.Second
)

// Log takes log messages of a server. Its values are comparable, and equal if they are for
// one listener.
type Log interface {
	Log(context.Context, *sdk.LoggingMessageParams) error
}

// caller is for whom a server is called: a workflow of a tenant.
type caller struct{ tenant, workflow string }

type callerKey struct{}

// For marks the calls that are made with a context as those of a workflow. Those that a
// [Connector] makes are marked by their intents.
func For(ctx context.Context, tenant, workflow string) context.Context {
	return context.WithValue(ctx, callerKey{}, caller{tenant, workflow})
}

// Listen gives the log messages of the server to a listener while calls are made for a
// workflow, until stop is called and as long as the session lasts: those of a session in
// which every call was made for this workflow, and every listener was this one. A log
// message names no call, and can quote any of them.
func (c *Client) Listen(tenant, workflow string, log Log) (stop func()) {
	of := caller{tenant, workflow}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listening[of] == nil {
		c.listening[of] = map[Log]int{}
	}
	c.listening[of][log]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.listening[of][log]--; c.listening[of][log] == 0 {
			delete(c.listening[of], log)
		}
		if len(c.listening[of]) == 0 {
			delete(c.listening, of)
		}
	}
}

// calling notes for whom a call is made in a session, before it is sent.
func (c *Client) calling(ctx context.Context, s *session) {
	of, _ := ctx.Value(callerKey{}).(caller)
	c.mu.Lock()
	logs := slices.Collect(maps.Keys(c.listening[of]))
	c.mu.Unlock()
	s.callers.add(of, logs)
}

type logged struct {
	to Log
	p  *sdk.LoggingMessageParams
}

// callers are those for whom calls were made in one session with a server.
type callers struct {
	mu     sync.Mutex
	of     caller // the first
	any    bool
	log    Log // nil if there was none yet
	shared bool
	queue  chan logged
}

func (l *callers) add(of caller, logs []Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.any && l.of != of {
		l.shared = true
	}
	l.of, l.any = of, true
	for _, log := range logs {
		if l.log != nil && l.log != log {
			l.shared = true
		}
		l.log = log
	}
}

// put queues a message for the only caller, if there is one.
func (l *callers) put(p *sdk.LoggingMessageParams) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log == nil || l.shared {
		return
	}
	select {
	case l.queue <- logged{l.log, p}:
	default:
	}
}

// deliver hands over what is queued until the session has ended.
func (l *callers) deliver(c *Client, dead <-chan struct{}) {
	for {
		select {
		case m := <-l.queue:
			c.recovered("a log message", func() {
				ctx, cancel := context.WithTimeout(c.life, logTime)
				defer cancel()
				_ = m.to.Log(ctx, m.p) // a client that misses one still gets its answers
			})
		case <-dead:
			return
		}
	}
}

// onLog takes a log message of the current session. One of an earlier session may be about
// the calls of another caller.
func (c *Client) onLog(r *sdk.LoggingMessageRequest) {
	c.mu.Lock()
	s := c.current
	c.mu.Unlock()
	if s != nil && r.Session == s.cs && r.Params != nil {
		s.callers.put(r.Params)
	}
}

var levels = []sdk.LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Levels are the levels of log messages, the one with the most messages first.
func Levels() []sdk.LoggingLevel { return slices.Clone(levels) }

// SetLevel requests log messages of the server, now and in later sessions. The callers
// share it: of all levels that were requested the one with the most messages applies.
func (c *Client) SetLevel(ctx context.Context, level sdk.LoggingLevel) error {
	c.mu.Lock()
	if now := slices.Index(levels, c.level); now < 0 || slices.Index(levels, level) < now {
		c.level = level
	}
	level = c.level
	c.mu.Unlock()
	s, err := c.session(ctx)
	if err != nil {
		return err
	}
	return s.setLevel(ctx, level)
}

func (s *session) setLevel(ctx context.Context, level sdk.LoggingLevel) error {
	if r := s.cs.InitializeResult(); r == nil || r.Capabilities == nil || r.Capabilities.Logging == nil {
		return nil
	}
	return s.cs.SetLoggingLevel(ctx, &sdk.SetLoggingLevelParams{Level: level})
}
