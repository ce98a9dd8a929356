package mcpgate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/mcpapi"
)

// pass calls a tool that reads, and hands on what it answers: results, errors of
// the tool and of the protocol, and progress.
func (g *Gateway) pass(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if err := g.may(ctx); err != nil {
		return nil, err
	}
	v, _ := mcpapi.VisitOf(ctx)
	leave, err := v.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	var tell func(*sdk.ProgressNotificationParams)
	if token := req.Params.GetProgressToken(); token != nil {
		tell = func(p *sdk.ProgressNotificationParams) {
			again := *p
			again.ProgressToken = token
			_ = req.Session.NotifyProgress(ctx, &again) // who cannot be told hears the answer
		}
	}
	args := req.Params.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, passTime, errSilent)
	defer cancel()
	r, err := g.client.Call(ctx, req.Params.Name, args, tell)
	return r, plain(ctx, err)
}

// may fails for who is not whose server it is, or may not do what an agent may.
func (g *Gateway) may(ctx context.Context) error {
	v, ok := mcpapi.VisitOf(ctx)
	if !ok {
		return access.ErrUnknown
	}
	if v.Who.Tenant != g.config.Tenant {
		return access.ErrForbidden
	}
	return v.Who.May(access.Submit)
}

var errSilent = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("the server behind the gateway did not answer within %s; it was only asked to read, so the request can be repeated", passTime)}

// plain is an error as a client hears it: that of the protocol as it came, and of
// others no more than that the server could not be asked.
func plain(ctx context.Context, err error) error {
	var said *jsonrpc.Error
	var known *connectors.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errSilent):
		return errSilent
	case errors.As(err, &said):
		return said
	case errors.As(err, &known):
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server behind the gateway cannot be reached"}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server behind the gateway did not answer"}
}

// through hands prompts, resources and completions on, and looks for changes of
// the tools before they are listed. Nothing that it lets in outlasts the wish to
// close.
func (g *Gateway) through(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		ctx, release := mcpapi.Patient(ctx, g.config.Closing)
		defer release()
		switch p := req.GetParams().(type) {
		case *sdk.ListToolsParams:
			g.look(ctx)
		case *sdk.CallToolParamsRaw:
			if p != nil && !g.knows(p.Name) {
				g.look(ctx)
			}
		case *sdk.ListPromptsParams, *sdk.GetPromptParams, *sdk.ListResourcesParams, *sdk.ListResourceTemplatesParams,
			*sdk.ReadResourceParams, *sdk.CompleteParams:
			if err := g.may(ctx); err != nil {
				return nil, err
			}
			return g.ask(ctx, req)
		}
		return next(ctx, method, req)
	}
}

func (g *Gateway) knows(tool string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, there := g.shown[tool]
	return there || tool == mcpapi.OutcomeToolName
}

func (g *Gateway) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	g.refresh(ctx)
}

// ask puts a question that is about no tool to the server behind. One that has
// no such thing has none of them.
func (g *Gateway) ask(ctx context.Context, req sdk.Request) (sdk.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, passTime, errSilent)
	defer cancel()
	s, err := g.client.Session(ctx)
	if err != nil {
		return nil, plain(ctx, err)
	}
	enveloped(req.GetParams())
	r, err := forward(ctx, s, req.GetParams())
	var said *jsonrpc.Error
	if errors.As(err, &said) && said.Code == jsonrpc.CodeMethodNotFound {
		if none := empty(req.GetParams()); none != nil {
			return none, nil
		}
	}
	if err != nil {
		return nil, plain(ctx, err)
	}
	return r, nil
}

// enveloped leaves of what a question came with, its _meta, the trace alone: the
// rest is between the client and us, and none of it goes along with calls of tools
// either.
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

// empty is the list of none.
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
