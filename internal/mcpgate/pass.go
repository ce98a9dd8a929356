package mcpgate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/visible"
)

// passTime bounds a request that is passed to the upstream server. Clients give up after
// a minute.
const passTime = time.Minute

// pass calls a tool that reads, and forwards its response: results, errors of the tool
// and of the protocol, and progress, each cleaned by package visible.
func (g *Gateway) pass(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if err := g.may(ctx, req.Params.Name); err != nil {
		return nil, err
	}
	v, _ := mcpapi.VisitOf(ctx)
	leave, err := v.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	forward := progressOf(ctx, req)
	args := req.Params.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	ctx, done := g.calling(ctx, v, req.Session)
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, passTime, errSilent)
	defer cancel()
	r, err := g.client.Call(ctx, req.Params.Name, args, forward)
	if err != nil {
		return nil, plain(ctx, err)
	}
	r.RequestState = "" // it belongs to a request for input, of which there is none
	passed, err := passable(r, visible.Data)
	var large *tooLargeError
	if errors.As(err, &large) {
		text := leftOut(req.Params.Name, large)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, IsError: true}, nil
	}
	return passed, err
}

// progressOf forwards progress of a tool to the client that asked for it, under the
// client's own token; nil if it did not.
func progressOf(ctx context.Context, req *sdk.CallToolRequest) func(*sdk.ProgressNotificationParams) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return func(p *sdk.ProgressNotificationParams) {
		// A client that misses progress still gets the result.
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: token, Message: visible.Clip(p.Message, maxPulse), Progress: p.Progress, Total: p.Total,
		})
	}
}

// calling marks calls of the upstream server as those of a client's session, which gets
// the log messages that can only be about them.
func (g *Gateway) calling(ctx context.Context, v *mcpapi.Visit, s *sdk.ServerSession) (_ context.Context, done func()) {
	workflow := v.WorkflowOf(s)
	return mcp.For(ctx, v.Who.Tenant, workflow), g.client.Listen(v.Who.Tenant, workflow, listener{s})
}

// listener is a client's session that gets log messages of the upstream server.
type listener struct{ session *sdk.ServerSession }

// Log forwards a message, made visible and bounded.
func (l listener) Log(ctx context.Context, p *sdk.LoggingMessageParams) error {
	data, err := json.Marshal(p.Data)
	if err != nil || !slices.Contains(mcp.Levels(), p.Level) {
		return err
	}
	if len(data) > maxProse {
		data, err = json.Marshal(fmt.Sprintf("left out by readback: this message has %d bytes; at most %d pass", len(data), maxProse))
	}
	if err != nil {
		return err
	}
	return l.session.Log(ctx, &sdk.LoggingMessageParams{
		Meta: marked(nil), Level: p.Level, Logger: visible.Clip(p.Logger, maxNamed), Data: json.RawMessage(visible.Document(data, prose)),
	})
}

// setLevel requests the log messages that a client wants. Its own session leaves out those
// that only others want.
func (g *Gateway) setLevel(ctx context.Context, p *sdk.SetLoggingLevelParams) error {
	if err := g.may(ctx, ""); err != nil {
		return err
	}
	if p == nil || !slices.Contains(mcp.Levels(), p.Level) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("level: want one of %v", mcp.Levels())}
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if err := g.client.SetLevel(ctx, p.Level); err != nil {
		g.log.WarnContext(ctx, "the server was not asked for log messages", "error", err)
	}
	return nil
}

// may fails for a caller of another tenant, for one without an agent's permissions, and
// for one whose scope does not cover the request: a tool, or "" for anything else.
func (g *Gateway) may(ctx context.Context, tool string) error {
	v, ok := mcpapi.VisitOf(ctx)
	if !ok {
		return access.ErrUnknown
	}
	if v.Who.Tenant != g.config.Tenant {
		return access.ErrForbidden
	}
	if err := v.Who.May(access.Submit); err != nil {
		return err
	}
	return g.covers(v.Who, tool)
}

// covers fails for a tool outside of the scope of a caller. A tool that only reads, or a
// request that is no tool, has no kind and no write type: a scope that lists kinds or
// tools covers only the tools that it lists.
func (g *Gateway) covers(who access.Identity, tool string) error {
	s := who.Scope
	if s == nil {
		return nil
	}
	if kind, write, ok := g.config.Connector.Contract().Target(tool); ok {
		return s.Names(g.config.Destination, kind, write, tool)
	}
	if g.classOf(tool) == writeOnly {
		return s.Names(g.config.Destination, mcp.WriteOnlyKind, intent.Create, tool)
	}
	if s.Reaches(g.config.Destination) && (slices.Contains(s.Tools, tool) || len(s.Tools)+len(s.Kinds) == 0) {
		return nil
	}
	return fmt.Errorf("%w: the scope of this token does not cover it", access.ErrForbidden)
}

func (g *Gateway) classOf(tool string) class {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shown[tool].class
}

// asks reports whether an answer asks the client for further input: of its user, whom readback
// would then seem to ask, or of its model.
func asks(r sdk.Result) bool {
	switch r := r.(type) {
	case *sdk.GetPromptResult:
		return r.InputRequests != nil || r.RequestState != ""
	case *sdk.ReadResourceResult:
		return r.InputRequests != nil || r.RequestState != ""
	}
	return false
}

// plain is an error as a client receives it: a protocol error, made visible. Any other
// error becomes the statement that the server could not be reached.
func plain(ctx context.Context, err error) error {
	var rpcErr *jsonrpc.Error
	var known *connectors.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errSilent):
		return errSilent
	case errors.As(err, &rpcErr):
		return visibleError(rpcErr)
	case errors.As(err, &known):
		return errUnreachable
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return errUnreadable
}

// through forwards prompts, resources and completions, and checks for changed tools
// before they are listed. No request that it admits outlasts closing.
func (g *Gateway) through(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		ctx, release := mcpapi.Patient(ctx, g.config.Closing)
		defer release()
		switch p := req.GetParams().(type) {
		case *sdk.ListToolsParams:
			g.read(ctx)
		case *sdk.CallToolParamsRaw:
			if p != nil && !g.knows(p.Name) {
				g.read(ctx)
			}
		case *sdk.SetLoggingLevelParams:
			if err := g.setLevel(ctx, p); err != nil {
				return nil, err
			}
		case *sdk.ListPromptsParams, *sdk.GetPromptParams, *sdk.ListResourcesParams, *sdk.ListResourceTemplatesParams,
			*sdk.ReadResourceParams, *sdk.CompleteParams:
			if err := g.may(ctx, ""); err != nil {
				return nil, err
			}
			return g.ask(ctx, req)
		}
		result, err := next(ctx, method, req)
		if listed, ok := result.(*sdk.ListToolsResult); ok && err == nil {
			return g.covered(ctx, listed), nil
		}
		return result, err
	}
}

// covered is a list of tools without those outside of the caller's scope.
func (g *Gateway) covered(ctx context.Context, all *sdk.ListToolsResult) *sdk.ListToolsResult {
	v, ok := mcpapi.VisitOf(ctx)
	if !ok || v.Who.Scope == nil {
		return all
	}
	some := *all
	some.Tools = slices.DeleteFunc(slices.Clone(all.Tools), func(t *sdk.Tool) bool {
		return t.Name != mcpapi.OutcomeToolName && g.covers(v.Who, t.Name) != nil
	})
	return &some
}

func (g *Gateway) knows(tool string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, there := g.shown[tool]
	return there || tool == mcpapi.OutcomeToolName
}

func (g *Gateway) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	g.refresh(ctx)
}

// ask forwards a request that is about no tool to the upstream server. If the server
// lacks the feature, the result is an empty list.
func (g *Gateway) ask(ctx context.Context, req sdk.Request) (sdk.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, passTime, errSilent)
	defer cancel()
	if v, ok := mcpapi.VisitOf(ctx); ok {
		session, _ := req.GetSession().(*sdk.ServerSession)
		calling, done := g.calling(ctx, v, session)
		defer done()
		ctx = calling
	}
	s, err := g.client.Session(ctx)
	if err != nil {
		return nil, plain(ctx, err)
	}
	enveloped(req.GetParams())
	r, err := forward(ctx, s, req.GetParams())
	var rpcErr *jsonrpc.Error
	if errors.As(err, &rpcErr) && rpcErr.Code == jsonrpc.CodeMethodNotFound {
		if none := empty(req.GetParams()); none != nil {
			return none, nil
		}
	}
	if err != nil {
		return nil, plain(ctx, err)
	}
	clean := visible.Data
	switch req.GetParams().(type) {
	case *sdk.ListPromptsParams, *sdk.ListResourcesParams, *sdk.ListResourceTemplatesParams:
		clean = prose
	}
	if asks(r) {
		return nil, errAsks
	}
	passed, err := passable(r, clean)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the answer of the server behind the gateway is left out: " + err.Error()}
	}
	// A place in a list is no text: only the server reads it.
	switch p := passed.(type) {
	case *sdk.ListPromptsResult:
		p.NextCursor = r.(*sdk.ListPromptsResult).NextCursor
	case *sdk.ListResourcesResult:
		p.NextCursor = r.(*sdk.ListResourcesResult).NextCursor
	case *sdk.ListResourceTemplatesResult:
		p.NextCursor = r.(*sdk.ListResourceTemplatesResult).NextCursor
	}
	return passed, nil
}

// enveloped keeps only the trace of a request's _meta: the rest is between the client and
// this gateway, and is not forwarded with calls of tools either.
func enveloped(p sdk.Params) {
	if reflect.ValueOf(p).IsNil() { // a typed nil: the client sent no params
		return
	}
	text, _ := p.GetMeta()["traceparent"].(string)
	p.SetMeta(nil)
	if text = engine.Traceparent(engine.WithTraceparent(context.Background(), text)); text != "" {
		p.SetMeta(map[string]any{"traceparent": text})
	}
}

func forward(ctx context.Context, s *sdk.ClientSession, params sdk.Params) (sdk.Result, error) {
	switch p := params.(type) {
	case *sdk.ListPromptsParams:
		return s.ListPrompts(ctx, p)
	case *sdk.GetPromptParams:
		return s.GetPrompt(ctx, p)
	case *sdk.ListResourcesParams:
		return s.ListResources(ctx, p)
	case *sdk.ListResourceTemplatesParams:
		return s.ListResourceTemplates(ctx, p)
	case *sdk.ReadResourceParams:
		return s.ReadResource(ctx, p)
	case *sdk.CompleteParams:
		return s.Complete(ctx, p)
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "not supported"}
}

// empty is an empty list.
func empty(params sdk.Params) sdk.Result {
	switch params.(type) {
	case *sdk.ListPromptsParams:
		return &sdk.ListPromptsResult{Prompts: []*sdk.Prompt{}}
	case *sdk.ListResourcesParams:
		return &sdk.ListResourcesResult{Resources: []*sdk.Resource{}}
	case *sdk.ListResourceTemplatesParams:
		return &sdk.ListResourceTemplatesResult{ResourceTemplates: []*sdk.ResourceTemplate{}}
	}
	return nil
}
