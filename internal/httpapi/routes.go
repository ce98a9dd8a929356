package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/access"
)

const (
	// minComment is the minimum length of a decision's comment, in characters: the
	// contract's.
	minComment = 10
	// defaultPage is the default number of entries of a listing: the contract's. maxPage
	// bounds one response.
	defaultPage = 20
	maxPage     = 100
	// maxOffset bounds the offset of a listing.
	maxOffset = 1_000_000
)

// route is one route and its handler.
type route struct {
	method, path string
	status       int // of success
	do           func(ctx context.Context, g Gate, c call) (any, error)
	act          access.Act
	alias        bool // in the shapes that the published clients expect
}

const (
	base  = "/api/v1/workflows"
	one   = base + "/{workflow_id}"
	step  = one + "/steps/{step_id}"
	other = "/api/v1/workflow-control" // the clients', which the platform does not serve
)

var routes = []route{
	{method: http.MethodPost, path: base, status: http.StatusCreated, do: create, act: access.Submit},
	{method: http.MethodGet, path: base, status: http.StatusOK, do: list, act: access.Read},
	{method: http.MethodGet, path: one, status: http.StatusOK, do: get, act: access.Read},
	{method: http.MethodPost, path: one + "/complete", status: http.StatusOK, do: complete, act: access.Submit},
	{method: http.MethodPost, path: one + "/fail", status: http.StatusOK, do: fail, act: access.Submit},
	{method: http.MethodPost, path: one + "/abort", status: http.StatusOK, do: abort, act: access.Submit},
	{method: http.MethodPost, path: one + "/resume", status: http.StatusOK, do: resume, act: access.Submit},
	{method: http.MethodGet, path: one + "/checkpoints", status: http.StatusOK, do: checkpoints, act: access.Read},
	{method: http.MethodPost, path: one + "/checkpoints/resume", status: http.StatusOK, do: resumeLast, act: access.Submit},
	{method: http.MethodPost, path: one + "/checkpoints/{n}/resume", status: http.StatusOK, do: resumeAt, act: access.Submit},
	{method: http.MethodPost, path: step + "/gate", status: http.StatusOK, do: gateStep, act: access.Submit},
	{method: http.MethodPost, path: step + "/complete", status: http.StatusNoContent, do: completeStep, act: access.Submit},
	{method: http.MethodPost, path: step + "/approve", status: http.StatusOK, do: approve, act: access.Decide},
	{method: http.MethodPost, path: step + "/reject", status: http.StatusOK, do: reject, act: access.Decide},
	{method: http.MethodGet, path: base + "/approvals/pending", status: http.StatusOK, do: pending, act: access.Trace},

	{method: http.MethodPost, path: other + "/{workflow_id}/steps/{step_id}/approve", status: http.StatusOK, do: approve, act: access.Decide, alias: true},
	{method: http.MethodPost, path: other + "/{workflow_id}/steps/{step_id}/reject", status: http.StatusOK, do: reject, act: access.Decide, alias: true},
	{method: http.MethodGet, path: other + "/pending-approvals", status: http.StatusOK, do: pending, act: access.Trace, alias: true},
}

// Routes are those of the gate, with the permission that each needs.
func Routes() []access.Route {
	var all []access.Route
	for _, r := range routes {
		all = append(all, access.Route{Method: r.method, Pattern: r.path, Act: r.act})
	}
	return all
}

func create(ctx context.Context, g Gate, c call) (any, error) {
	var r gate.CreateRequest
	if err := decode(c.body, &r, true); err != nil {
		return nil, err
	}
	return g.Create(ctx, c.Caller, r)
}

func list(ctx context.Context, g Gate, c call) (any, error) {
	found, err := g.List(ctx, c.Caller, gate.ListRequest{
		Limit: number(c.query, "limit", defaultPage, maxPage), Offset: number(c.query, "offset", 0, maxOffset),
		Status: c.query.Get("status"), Source: c.query.Get("source"), TraceID: c.query.Get("trace_id")})
	if found.Workflows == nil {
		found.Workflows = []gate.View{}
	}
	return found, err
}

func get(ctx context.Context, g Gate, c call) (any, error) {
	return g.Get(ctx, c.Caller, c.workflowID)
}

func gateStep(ctx context.Context, g Gate, c call) (any, error) {
	var r gate.GateRequest
	if err := decode(c.body, &r, true); err != nil {
		return nil, err
	}
	// The contract's one word: only this value returns a step's output.
	r.IncludePriorOutput = c.query.Get("include_prior_output") == "true"
	return g.Gate(ctx, c.Caller, c.workflowID, c.stepID, r)
}

func completeStep(ctx context.Context, g Gate, c call) (any, error) {
	var r gate.CompleteRequest
	if err := decode(c.body, &r, false); err != nil {
		return nil, err
	}
	seen, err := g.CompleteStep(ctx, c.Caller, c.workflowID, c.stepID, r)
	if seen == nil {
		return nil, err
	}
	return completed{seen}, err
}

// completed is the destination's state of a step that declared an intent. The published
// clients cannot declare one: they always get the contract's 204.
type completed struct {
	Verification *gate.Verification `json:"verification"`
}

// commentBody is a reviewer's comment on a decision.
type commentBody struct {
	Reason  string `json:"reason"`
	Comment string `json:"comment"`
	// ApprovalID is ours: the hold that the reviewer saw.
	ApprovalID string `json:"approval_id"`
}

// ending is one of the ways in which a workflow ends, or continues.
type ending func(ctx context.Context, c gate.Caller, workflowID, reason string) (gate.Ended, error)

func end(ctx context.Context, c call, how ending) (any, error) {
	var s commentBody
	if err := decode(c.body, &s, false); err != nil {
		return nil, err
	}
	return how(ctx, c.Caller, c.workflowID, s.Reason)
}

func complete(ctx context.Context, g Gate, c call) (any, error) { return end(ctx, c, g.Complete) }
func fail(ctx context.Context, g Gate, c call) (any, error)     { return end(ctx, c, g.Fail) }
func abort(ctx context.Context, g Gate, c call) (any, error)    { return end(ctx, c, g.Abort) }
func resume(ctx context.Context, g Gate, c call) (any, error)   { return end(ctx, c, g.Resume) }

// checkpoint also has the fields of the published clients, which use its id in a path.
type checkpoint struct {
	gate.Checkpoint
	ID          int       `json:"id"` // the step's index
	WorkflowID  string    `json:"workflow_id"`
	Type        string    `json:"checkpoint_type"`
	IsResumable bool      `json:"is_resumable"`
	CreatedAt   time.Time `json:"created_at"`
}

type checkpointList struct {
	WorkflowID  string       `json:"workflow_id"`
	Checkpoints []checkpoint `json:"checkpoints"`
	Count       int          `json:"count"`
}

func checkpoints(ctx context.Context, g Gate, c call) (any, error) {
	found, err := g.Checkpoints(ctx, c.Caller, c.workflowID)
	list := checkpointList{WorkflowID: found.WorkflowID, Checkpoints: []checkpoint{}, Count: found.Count}
	for _, p := range found.Checkpoints {
		list.Checkpoints = append(list.Checkpoints, checkpoint{Checkpoint: p, ID: p.StepIndex, WorkflowID: found.WorkflowID,
			Type: "step_gate", IsResumable: true, CreatedAt: p.CompletedAt})
	}
	return list, err
}

// resumed is a workflow that was resumed, and after which of its completed steps. It has
// no new decision: the gate of the next step makes one.
type resumed struct {
	gate.Ended
	Step  string `json:"resumed_from_checkpoint,omitempty"`
	Index *int   `json:"resumed_from_index,omitempty"`
}

// resumeLast resumes a workflow after its last checkpoint, resumeAt after any. Nothing is
// deleted: a step after it that was completed stays completed, and its gate says so.
func resumeLast(ctx context.Context, g Gate, c call) (any, error) {
	return resumeFrom(ctx, g, c, -1)
}

func resumeAt(ctx context.Context, g Gate, c call) (any, error) {
	n, err := strconv.Atoi(c.path("n"))
	if err != nil || n < 0 {
		return nil, badField("checkpoint", "is no number of one; want the step_index of a completed step")
	}
	return resumeFrom(ctx, g, c, n)
}

func resumeFrom(ctx context.Context, g Gate, c call, n int) (any, error) {
	found, err := g.Checkpoints(ctx, c.Caller, c.workflowID)
	if err != nil {
		return nil, err
	}
	at := len(found.Checkpoints) - 1
	if n >= 0 {
		at = slices.IndexFunc(found.Checkpoints, func(p gate.Checkpoint) bool { return p.StepIndex == n })
		if at < 0 {
			return nil, &gate.Error{Code: gate.NotFound, Message: "Checkpoint not found"}
		}
	}
	ended, err := g.Resume(ctx, c.Caller, c.workflowID, "")
	if err != nil || at < 0 {
		return resumed{Ended: ended}, err
	}
	from := found.Checkpoints[at]
	return resumed{ended, from.StepID, &from.StepIndex}, nil
}

// decider refuses a caller that may not decide, before any read.
func decider(c call) error {
	if c.Role == engine.RoleAgent {
		return &gate.Error{Code: gate.Forbidden, Message: "an agent cannot decide about approvals; a reviewer must, with their own credentials"}
	}
	return nil
}

// comment is the comment on a decision. The published clients send none.
func comment(c call, field string) (gate.Comment, error) {
	var s commentBody
	if err := decode(c.body, &s, false); err != nil {
		return gate.Comment{}, err
	}
	text := cmp.Or(s.Comment, s.Reason)
	if field == "reason" {
		text = cmp.Or(s.Reason, s.Comment)
	}
	text = strings.TrimSpace(text)
	if n := utf8.RuneCountInString(text); n < minComment && !c.alias {
		return gate.Comment{}, badField(field, fmt.Sprintf("has %d characters; want at least %d", n, minComment))
	}
	return gate.Comment{Comment: text, ApprovalID: s.ApprovalID}, nil
}

func approve(ctx context.Context, g Gate, c call) (any, error) {
	return decide(ctx, c, "comment", g.Approve)
}

func reject(ctx context.Context, g Gate, c call) (any, error) {
	return decide(ctx, c, "reason", g.Reject)
}

// decidedAlias is the response that the published clients expect.
type decidedAlias struct {
	WorkflowID string `json:"workflow_id"`
	StepID     string `json:"step_id"`
	Status     string `json:"status"`
}

func decide(ctx context.Context, c call, field string, how func(context.Context, gate.Caller, string, string, gate.Comment) (gate.ApprovalResult, error)) (any, error) {
	if err := decider(c); err != nil {
		return nil, err
	}
	text, err := comment(c, field)
	if err != nil {
		return nil, err
	}
	result, err := how(ctx, c.Caller, c.workflowID, c.stepID, text)
	if err != nil {
		return nil, err
	}
	if c.alias {
		return decidedAlias{result.WorkflowID, result.StepID, string(result.ApprovalStatus)}, nil
	}
	return result, nil
}

type pendingList struct {
	PendingApprovals []gate.PendingApproval `json:"pending_approvals"`
	Count            int                    `json:"count"`
}

type pendingAlias struct {
	Approvals []pendingItem `json:"approvals"`
	Total     int           `json:"total"`
}

type pendingItem struct {
	WorkflowID   string    `json:"workflow_id"`
	WorkflowName string    `json:"workflow_name"`
	StepID       string    `json:"step_id"`
	StepName     string    `json:"step_name"`
	StepType     string    `json:"step_type"`
	CreatedAt    time.Time `json:"created_at"`
}

func pending(ctx context.Context, g Gate, c call) (any, error) {
	limit := number(c.query, "limit", defaultPage, maxPage)
	found, err := g.Pending(ctx, c.Caller, limit)
	if err != nil {
		return nil, err
	}
	all := len(found)
	if all == limit { // more may wait than fit on the page
		n, err := g.CountPending(ctx, c.Caller)
		if err != nil {
			return nil, err
		}
		all = max(all, n)
	}
	if !c.alias {
		return pendingList{append([]gate.PendingApproval{}, found...), all}, nil
	}
	list := pendingAlias{Approvals: []pendingItem{}, Total: all}
	for _, p := range found {
		list.Approvals = append(list.Approvals, pendingItem{p.WorkflowID, p.WorkflowName, p.StepID, p.StepName, p.StepType, p.CreatedAt})
	}
	return list, nil
}

// number reads a number of the query. It is the default where it is 0, missing or
// invalid, as in the published gate, and never more than most. The response has the
// number used.
func number(q url.Values, name string, otherwise, most int) int {
	n, err := strconv.Atoi(q.Get(name))
	if err != nil || n < 0 {
		n = 0
	}
	return min(cmp.Or(n, otherwise), most)
}
