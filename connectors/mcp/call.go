package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
)

const (
	// maxTools and maxPages bound what a server may list.
	maxTools = 1000
	maxPages = 50
	// freshTools is how long a list of tools is used. A server may change a tool at any time
	// without notice.
	freshTools = time.Minute
)

// errInput: the tool requests further input in the middle of a call.
var errInput = errors.New("the tool asks for further input, which readback cannot give")

// grace is how long a call that was given up may take to come back before its
// session is given up too: a process that does not read stops every other call.
const grace = 250 * time.Millisecond

// Call calls a tool once, in the current session or a new one. Progress goes to the function,
// which may be nil. If the call surely never left us, the error is one of [connectors.NotSent],
// and wraps [ErrUnreachable] where no session could be opened. Every other error means an unknown
// result, except for the refusals that HTTP has status codes for.
func (c *Client) Call(ctx context.Context, tool string, args any, progress func(*sdk.ProgressNotificationParams)) (*sdk.CallToolResult, error) {
	p := &sdk.CallToolParams{Name: tool, Arguments: args}
	if progress != nil {
		token, forget := c.follow(progress)
		defer forget()
		p.SetProgressToken(token)
	}
	traced(ctx, p)
	connectors.Called(ctx)
	r, err := c.attempt(ctx, p)
	if errors.Is(err, sdk.ErrConnectionClosed) && connectors.FateOf(err) == connectors.FateNotSent {
		return c.attempt(ctx, p) // the session was over before anything left us
	}
	return r, err
}

// traced sends the server the trace that the call belongs to, as the protocol defines. Other
// values that callers pass among themselves are not sent.
func traced(ctx context.Context, p *sdk.CallToolParams) {
	text := httpsend.Traceparent(ctx)
	if text == "" {
		return
	}
	meta := p.GetMeta()
	if meta == nil {
		meta = map[string]any{}
	}
	meta["traceparent"] = text
	p.SetMeta(meta)
}

func (c *Client) attempt(ctx context.Context, p *sdk.CallToolParams) (*sdk.CallToolResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, connectors.NotSent(err)
	}
	s, err := c.session(ctx)
	if err != nil {
		return nil, unsent(err)
	}
	return c.once(ctx, s, p)
}

// unsent is an error before a call left us: not sent, or a refused login.
func unsent(err error) error {
	if connectors.FateOf(err) == connectors.FateLogin {
		return err
	}
	return connectors.NotSent(err)
}

// once makes one call and returns what is known about it.
func (c *Client) once(ctx context.Context, s *session, p *sdk.CallToolParams) (*sdk.CallToolResult, error) {
	c.calling(ctx, s)
	ctx, m := marked(ctx)
	type result struct {
		r   *sdk.CallToolResult
		err error
	}
	done := make(chan result, 1)
	go func() {
		r, err := s.cs.CallTool(ctx, p)
		done <- result{r, err}
	}()
	var got result
	select {
	case got = <-done:
	case <-ctx.Done():
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case got = <-done:
		case <-late.C:
			c.drop(s)
			return nil, fmt.Errorf("the call was given up: %w", ctx.Err())
		}
	}
	if got.err != nil {
		return nil, c.failed(s, m, got.err)
	}
	if got.r.InputRequests != nil || got.r.NeedsInput() {
		return nil, errInput
	}
	exact(got.r)
	return got.r, nil
}

// failed returns what an error of a call means.
func (c *Client) failed(s *session, m *mark, err error) error {
	if errors.Is(err, sdk.ErrSessionMissing) || errors.Is(err, sdk.ErrConnectionClosed) {
		c.drop(s)
	}
	status := int(m.status.Load())
	// A restarted server answers 404 to earlier sessions, and does not process their messages.
	if !m.sent.Load() || status == http.StatusNotFound && errors.Is(err, sdk.ErrSessionMissing) {
		return connectors.NotSent(err)
	}
	if status == 0 || status == http.StatusOK {
		return err
	}
	var h http.Header
	if p := m.header.Load(); p != nil {
		h = *p
	}
	if known := httpsend.Classify(status, h, time.Now()); known != nil {
		return known
	}
	return err
}

// follow makes a progress token for a call. No progress is handed over after forget.
func (c *Client) follow(f func(*sdk.ProgressNotificationParams)) (token string, forget func()) {
	queue, done := make(chan *sdk.ProgressNotificationParams, queued), make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	token = fmt.Sprintf("readback-%d", c.calls)
	c.progress[token] = queue
	go func() {
		defer close(done)
		c.recovered("notifications/progress", func() {
			for p := range queue {
				f(p)
			}
		})
	}()
	return token, func() {
		c.mu.Lock()
		delete(c.progress, token)
		close(queue)
		c.mu.Unlock()
		<-done
	}
}

// Tools lists the tools of the server. A list of the same session that is less than a minute old
// is reused unless the server has reported a change, or fresh is set.
func (c *Client) Tools(ctx context.Context, fresh bool) ([]*sdk.Tool, error) {
	s, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	tools, err := s.list(ctx, fresh)
	if !errors.Is(err, sdk.ErrConnectionClosed) {
		return tools, err
	}
	c.drop(s) // it was over already
	if s, err = c.session(ctx); err != nil {
		return nil, err
	}
	return s.list(ctx, fresh)
}

// list requests the tools if the known list is old.
func (s *session) list(ctx context.Context, fresh bool) ([]*sdk.Tool, error) {
	select {
	case s.listing <- struct{}{}:
		defer func() { <-s.listing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	tools, good := s.tools, !s.asOf.IsZero() && time.Since(s.asOf) < freshTools
	s.mu.Unlock()
	if good && !fresh {
		return tools, nil
	}
	asked := time.Now()
	s.mu.Lock()
	s.asOf = asked // a change that is reported from here on wins
	s.mu.Unlock()
	ctx, m := marked(ctx)
	tools, err := list(ctx, s.cs)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.asOf = time.Time{}
		return nil, m.login(err)
	}
	s.tools = tools
	return tools, nil
}

func list(ctx context.Context, cs *sdk.ClientSession) ([]*sdk.Tool, error) {
	var all []*sdk.Tool
	p := &sdk.ListToolsParams{}
	for range maxPages {
		r, err := cs.ListTools(ctx, p)
		if err != nil {
			return nil, err
		}
		all = append(all, r.Tools...)
		if len(all) > maxTools {
			return nil, answer("the server lists more than %d tools", maxTools)
		}
		if r.NextCursor == "" {
			return all, nil
		}
		p.Cursor = r.NextCursor
	}
	return nil, answer("the list of tools has more than %d pages", maxPages)
}

// forget makes the next question for tools a real one.
func (s *session) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asOf = time.Time{}
}
