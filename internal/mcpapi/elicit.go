package mcpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

// maxToolName bounds the name of a tool in a message to the user, in characters.
const maxToolName = 128

// asked is the name of the one input request of a result.
const asked = "review"

// page is the elicitation that shows the client's user the page of a write that a reviewer
// must decide about: nil where there is no such page, where an earlier call began the
// write, and where the client does not open addresses. What the client answers decides
// nothing: the reviewer logs in on the page.
func page(req *mcp.CallToolRequest, out engine.Outcome) *mcp.ElicitParams {
	c := req.ClientCapabilities()
	if out.ReviewURL == "" || out.Replayed || req.Session == nil || c == nil || c.Elicitation == nil || c.Elicitation.URL == nil {
		return nil
	}
	return &mcp.ElicitParams{
		Mode: "url", URL: out.ReviewURL, ElicitationID: string(out.ID),
		Message: reviewerMust(visible.Clip(req.Params.Name, maxToolName)),
	}
}

// Ask shows the client's user the page of a write that a reviewer must decide about, and
// waits for the client at most until the time that the call itself may take.
func Ask(ctx context.Context, req *mcp.CallToolRequest, out engine.Outcome, until time.Time) {
	p := page(req, out)
	if p == nil || inRounds(req) || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	_, _ = req.Session.Elicit(ctx, p) // the answer has the address, too
}

// inRounds reports whether a client is asked in the result of its call and calls again,
// as newer versions of the protocol want it.
func inRounds(req *mcp.CallToolRequest) bool {
	p := req.Session.InitializeParams()
	return p == nil || p.ProtocolVersion >= sessionless
}

// Again is the outcome of the write that a call began in an earlier round; false for a
// first round. A later round never makes a write.
func Again(ctx context.Context, o *service.Service, who access.Identity, req *mcp.CallToolRequest, wait time.Duration) (engine.Outcome, bool, error) {
	state := req.Params.RequestState
	if state == "" && len(req.Params.InputResponses) == 0 {
		return engine.Outcome{}, false, nil
	}
	err := fmt.Errorf("%w: its requestState is not the one of the answer before", errNames)
	id, _, _ := strings.Cut(state, ".")
	if id == "" || len(id) > maxID || state != stateOf(req, ledger.ID(id)) {
		return engine.Outcome{}, true, err
	}
	out, failed := Await(ctx, o, who, ledger.ID(id), wait)
	if !errors.Is(failed, ledger.ErrNotFound) {
		err = failed
	}
	out.Replayed = false
	return out, true, err
}

// stateOf is the state of a call between its rounds: the write that it began, and a digest of
// the call. With the state of another call its answer would say "verified" of what that did.
func stateOf(req *mcp.CallToolRequest, id ledger.ID) string {
	args := jsontext.Value(slices.Clone(req.Params.Arguments))
	_ = args.Canonicalize() // what is no JSON is its own form
	sum := sha256.Sum256([]byte(req.Params.Name + "\n" + string(args)))
	return string(id) + "." + hex.EncodeToString(sum[:16])
}

// AnswerCall is the result of a call of a tool that writes, with an outcome.
func AnswerCall(ctx context.Context, req *mcp.CallToolRequest, out engine.Outcome) (*mcp.CallToolResult, error) {
	p := page(req, out)
	if p == nil || !inRounds(req) || req.Params.RequestState != "" || ctx.Err() != nil {
		return AnswerOutcome(out, req.Params.Name)
	}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{asked: p}, RequestState: stateOf(req, out.ID)}, nil
}
