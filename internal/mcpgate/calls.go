package mcpgate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/mcpapi/tool"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

const (
	// beforeTime bounds the read of a record before the intent of a call is made. A
	// server that takes longer counts as unreachable.
	beforeTime = 20 * time.Second
	// maxArguments bounds the arguments of one call in bytes: an intent has a
	// megabyte, and may carry them twice.
	maxArguments = 400 << 10
)

// bad is an error of all arguments, which a model can mend. The problem says what would
// be right.
func bad(problem string) error {
	return &tool.ArgumentsError{Problems: []tool.Problem{{Problem: strings.TrimPrefix(problem, mcp.ErrArguments.Error()+": ")}}}
}

// given decodes the arguments of a call, with their numbers exact and no member
// twice.
func given(req *sdk.CallToolRequest) (intent.Fields, error) {
	raw := req.Params.Arguments
	if len(raw) == 0 || string(raw) == "null" {
		return intent.Fields{}, nil
	}
	if len(raw) > maxArguments {
		return nil, bad(fmt.Sprintf("the arguments have more than %d bytes", maxArguments))
	}
	var args intent.Fields
	if err := jsonv2.Unmarshal(raw, &args); err != nil || args == nil {
		return nil, bad("the arguments are no JSON object with each member once")
	}
	return args, nil
}

// checked decodes the arguments and validates them against the tool's schema.
func checked(req *sdk.CallToolRequest, schema *jsonschema.Schema) (intent.Fields, error) {
	args, err := given(req)
	if err != nil || schema == nil {
		return args, err
	}
	return args, fits(schema, map[string]any(args))
}

// verified is the verified form of a tool with a contract.
func (g *Gateway) verified(t *sdk.Tool, schema *jsonschema.Schema) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		args, err := checked(req, schema)
		if err == nil && g.config.Connector.Contract().Passes(t.Name, args) {
			return g.pass(ctx, req)
		}
		return g.answer(ctx, req, err, func(ctx context.Context, who access.Identity, named intent.WriteIntent) (engine.Outcome, error) {
			defer mcpapi.Pulse(ctx, req, g.config.Wait, mcpapi.PulseRecorded)()
			return g.write(ctx, who, named, args)
		})
	}
}

// write makes the write of a call that has its name. The intent may depend on the
// state of the record, which the call itself changes. So the same call again is
// recognized by its arguments, and has the outcome of the first.
func (g *Gateway) write(ctx context.Context, who access.Identity, named intent.WriteIntent, args intent.Fields) (engine.Outcome, error) {
	conn := g.config.Connector
	_, looks, err := conn.Contract().ReadsBack(named.Tool, args)
	if err != nil {
		return engine.Outcome{}, bad(err.Error())
	}
	if looks {
		if out, err := g.begun(ctx, who, named, args); !errors.Is(err, ledger.ErrNotFound) {
			return out, err
		}
	}
	in, err := g.derive(ctx, named, args)
	if err == nil {
		var out engine.Outcome
		if out, err = mcpapi.Submit(ctx, g.service, who, in, g.config.Wait); err == nil {
			return out, nil
		}
	}
	if looks && (errors.Is(err, tool.ErrArguments) || errors.Is(err, ledger.ErrDigestMismatch)) {
		// The same call, running concurrently, may have changed the record meanwhile.
		if out, beside := g.begun(ctx, who, named, args); !errors.Is(beside, ledger.ErrNotFound) {
			return out, beside
		}
	}
	return engine.Outcome{}, err
}

// begun returns the outcome of the write that the same call began before. It fails with
// [ledger.ErrNotFound] if there is none, and with [ledger.ErrDigestMismatch] if that was
// another call.
func (g *Gateway) begun(ctx context.Context, who access.Identity, named intent.WriteIntent, args intent.Fields) (engine.Outcome, error) {
	before, id, err := g.service.Begun(ctx, who, named)
	if err != nil {
		return engine.Outcome{}, err
	}
	if !g.config.Connector.SameCall(before, named.Destination, named.Tool, args) {
		return engine.Outcome{}, &ledger.DigestMismatchError{ID: id, Recorded: "that of other arguments", Received: "that of these"}
	}
	out, err := mcpapi.Await(ctx, g.service, who, id, g.config.Wait)
	out.Replayed = true
	return out, err
}

// derive makes the intent of a call. If the contract needs it, derive reads the record
// first.
func (g *Gateway) derive(ctx context.Context, named intent.WriteIntent, args intent.Fields) (intent.WriteIntent, error) {
	conn := g.config.Connector
	looking, cancel := context.WithTimeout(ctx, beforeTime)
	defer cancel()
	before, err := conn.Before(looking, named.Tool, args)
	switch {
	case errors.Is(err, mcp.ErrArguments):
		return intent.WriteIntent{}, bad(err.Error())
	case err != nil:
		g.log.WarnContext(ctx, "the record before a call could not be read", "tool", named.Tool, "error", g.redacted(named, args, err))
		return intent.WriteIntent{}, fmt.Errorf("%w: the record could not be read before the call", ledger.ErrUnavailable)
	}
	in, err := conn.Contract().Derive(named.Tool, args, before)
	if err != nil {
		return intent.WriteIntent{}, bad(err.Error())
	}
	in.Tenant, in.Destination, in.Tool, in.IdempotencyKey = named.Tenant, named.Destination, named.Tool, named.IdempotencyKey
	in.Workflow, in.Step, in.Call = named.Workflow, named.Step, named.Call
	return in, nil
}

// redacted is the server's response to the arguments of a call, without the arguments: only
// the intent marks which of them are sensitive, and it is not made yet.
func (g *Gateway) redacted(named intent.WriteIntent, args intent.Fields, why error) string {
	text := why.Error()
	w := intent.WriteIntent{Tenant: named.Tenant, Destination: named.Destination, Payload: args}
	for name := range args {
		w.Sensitive = append(w.Sensitive, string(intent.Pointer("").AppendToken(name)))
	}
	g.service.Clean(access.Identity{Tenant: named.Tenant}, &text, w)
	return text
}

// unverified is a tool without a contract. Its answer has what the tool itself answered,
// if that was to this call: it is not recorded.
func (g *Gateway) unverified(*sdk.Tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		args, err := given(req)
		var own *sdk.CallToolResult
		var out engine.Outcome
		r, err := g.answer(ctx, req, err, func(ctx context.Context, who access.Identity, named intent.WriteIntent) (engine.Outcome, error) {
			in := mcp.WriteOnlyCall(named, named.Tool, args)
			await := g.config.Connector.Await(in.Stamp(), progressOf(ctx, req))
			var err error
			out, err = mcpapi.Submit(ctx, g.service, who, in, g.config.Wait)
			own = await()
			return out, err
		})
		if err != nil || own == nil || r.IsError {
			return r, err
		}
		if r.InputRequests != nil { // a second round would not have the tool's answer; this one has the address of the page
			if r, err = mcpapi.AnswerOutcome(out, req.Params.Name); err != nil {
				return r, err
			}
		}
		passed, err := passable(own, visible.Data)
		var large *tooLargeError
		if err != nil && !errors.As(err, &large) {
			return r, nil // the outcome is known without it
		}
		if large != nil {
			return mcpapi.WithResult(r, own, large.Error())
		}
		for _, c := range passed.Content {
			if all := metasIn(c); len(all) > 0 {
				*all[0] = marked(*all[0])
			}
		}
		return mcpapi.WithResult(r, passed, "")
	}
}

// maker makes the write of a call, which has its name already, and returns its outcome.
type maker func(ctx context.Context, who access.Identity, named intent.WriteIntent) (engine.Outcome, error)

// answer makes the write of a call and returns the result.
func (g *Gateway) answer(ctx context.Context, req *sdk.CallToolRequest, err error, do maker) (*sdk.CallToolResult, error) {
	name := req.Params.Name
	var out engine.Outcome
	if err == nil {
		out, err = g.submit(ctx, req, do)
	}
	if err != nil {
		g.log.InfoContext(ctx, "call without outcome", "tool", name, "reason", mcpapi.Reason(err))
		return mcpapi.AnswerError(ctx, g.service, err, name)
	}
	return mcpapi.AnswerCall(ctx, req, out)
}

// submit names a call before anything is read, so that the same call always has the same
// name.
func (g *Gateway) submit(ctx context.Context, req *sdk.CallToolRequest, do maker) (engine.Outcome, error) {
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
	if err := g.covers(v.Who, req.Params.Name); err != nil { // before anything is read
		return engine.Outcome{}, err
	}
	if out, again, err := mcpapi.Again(ctx, g.service, v.Who, req, g.config.Wait); again {
		return out, err
	}
	until := time.Now().Add(g.config.Wait)
	named := intent.WriteIntent{Tenant: v.Who.Tenant, Destination: g.config.Destination, Tool: req.Params.Name}
	if err := v.Name(req, &named); err != nil {
		return engine.Outcome{}, err
	}
	if named.Workflow == v.WorkflowOf(req.Session) { // any other one can be that of several sessions
		defer g.client.Listen(named.Tenant, named.Workflow, listener{req.Session})()
	}
	out, err := do(mcp.For(ctx, named.Tenant, named.Workflow), v.Who, named)
	if err == nil {
		mcpapi.Ask(ctx, req, out, until)
	}
	return out, err
}
