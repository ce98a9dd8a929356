package mcpgate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/mcpapi/tool"
	"github.com/readback-go/readback/ledger"
)

// checker says what is wrong with arguments by the tool's own schema; nil where
// nobody can say.
type checker func(args any) error

// schemaOf makes a checker of a tool's schema. The error says that the library
// does not understand it.
func schemaOf(t *sdk.Tool) (checker, error) {
	text, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, err
	}
	return r.Validate, nil
}

// bad is an error of the arguments, which a model can mend.
func bad(problem string) error {
	return &tool.ArgumentsError{Problems: []tool.Problem{{Argument: "arguments", Problem: problem, Want: "what the schema and the description of the tool say"}}}
}

// given decodes the arguments of a call, with their numbers exact and no member
// twice.
func given(req *sdk.CallToolRequest) (intent.Fields, error) {
	raw := req.Params.Arguments
	if len(raw) == 0 || string(raw) == "null" {
		return intent.Fields{}, nil
	}
	if len(raw) > maxArguments {
		return nil, bad(fmt.Sprintf("have more than %d bytes", maxArguments))
	}
	var args intent.Fields
	if err := jsonv2.Unmarshal(raw, &args); err != nil || args == nil {
		return nil, bad("are no JSON object with each member once")
	}
	return args, nil
}

// checked decodes the arguments and holds them against the tool's schema.
func checked(req *sdk.CallToolRequest, check checker) (intent.Fields, error) {
	args, err := given(req)
	if err != nil || check == nil {
		return args, err
	}
	var plain map[string]any // the schema's library knows doubles
	if err := json.Unmarshal(orEmpty(req.Params.Arguments), &plain); err != nil {
		return nil, bad("are no JSON object")
	}
	if err := check(plain); err != nil {
		return nil, bad("do not fit the schema of the tool: " + clip(err.Error()))
	}
	return args, nil
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// clip keeps a complaint of a library short.
func clip(s string) string {
	const most = 500
	if len(s) > most {
		s = s[:most] + "…"
	}
	return s
}

// verified is the twin of a tool with a contract.
func (g *Gateway) verified(t *sdk.Tool, check checker) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		args, err := checked(req, check)
		if err == nil && g.config.Connector.Contract().Passes(t.Name, args) {
			return g.pass(ctx, req)
		}
		return g.answer(ctx, req, err, func() (intent.WriteIntent, error) { return g.derive(ctx, t.Name, args) })
	}
}

// derive makes the intent of a call, and looks at the record before where the
// contract needs that.
func (g *Gateway) derive(ctx context.Context, name string, args intent.Fields) (intent.WriteIntent, error) {
	conn := g.config.Connector
	before, err := conn.Before(ctx, name, args)
	switch {
	case errors.Is(err, mcp.ErrArguments):
		return intent.WriteIntent{}, bad(err.Error())
	case err != nil:
		g.log.WarnContext(ctx, "the record before a call could not be read", "tool", name, "error", err)
		return intent.WriteIntent{}, fmt.Errorf("%w: the record could not be read before the call", ledger.ErrUnavailable)
	}
	in, err := conn.Contract().Derive(name, args, before)
	if err != nil {
		return intent.WriteIntent{}, bad(err.Error())
	}
	return in, nil
}

// unverified is a tool without a contract.
func (g *Gateway) unverified(t *sdk.Tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		args, err := given(req)
		return g.answer(ctx, req, err, func() (intent.WriteIntent, error) {
			return intent.WriteIntent{Kind: mcp.BlindKind, Payload: intent.Fields{"arguments": map[string]any(args)}}, nil
		})
	}
}

// answer submits the intent of a call and says what became of it.
func (g *Gateway) answer(ctx context.Context, req *sdk.CallToolRequest, err error, make func() (intent.WriteIntent, error)) (*sdk.CallToolResult, error) {
	name := req.Params.Name
	var out engine.Outcome
	if err == nil {
		out, err = g.submit(ctx, req, make)
	}
	if err != nil {
		g.log.InfoContext(ctx, "call without outcome", "tool", name, "error", err)
		return mcpapi.AnswerError(err, name)
	}
	return mcpapi.Answer(out, name)
}

func (g *Gateway) submit(ctx context.Context, req *sdk.CallToolRequest, make func() (intent.WriteIntent, error)) (engine.Outcome, error) {
	v, ok := mcpapi.VisitOf(ctx)
	if !ok {
		return engine.Outcome{}, access.ErrUnknown
	}
	if err := v.Who.May(access.Submit); err != nil || v.Who.Tenant != g.config.Tenant {
		return engine.Outcome{}, errors.Join(err, access.ErrForbidden)
	}
	leave, err := v.Enter()
	if err != nil {
		return engine.Outcome{}, err
	}
	defer leave()
	in, err := make()
	if err != nil {
		return engine.Outcome{}, err
	}
	in.Tenant, in.Destination, in.Tool = v.Who.Tenant, g.config.Destination, req.Params.Name
	if err := v.Name(req, &in); err != nil {
		return engine.Outcome{}, err
	}
	if in.Kind == mcp.BlindKind {
		args, _ := in.Payload["arguments"].(map[string]any)
		in.Payload = nil
		in = mcp.BlindCall(in, req.Params.Name, args)
	}
	defer mcpapi.Pulse(ctx, req, g.config.Wait, "recorded; waiting until it is seen at the destination")()
	return g.office.Submit(ctx, v.Who, in, g.config.Wait)
}
