package gate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

// Kinds of documents, and the index words of steps.
const (
	kindWorkflow = "workflow"
	kindStep     = "step"

	statePending = "pending" // waits for a reviewer
	stateGated   = "gated"
	stateDone    = "completed"
)

// flow is the body of a workflow's document.
type flow struct {
	Name     string          `json:"name"`
	Source   string          `json:"source"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	TraceID  string          `json:"trace_id,omitempty"`
	Status   Status          `json:"status"`
	Reason   string          `json:"reason,omitempty"`
	EndedBy  string          `json:"ended_by,omitempty"`
	EndedAt  *time.Time      `json:"ended_at,omitempty"`
	// Steps is how many steps were gated. Last holds the last two of them.
	Steps int      `json:"steps,omitempty"`
	Last  []string `json:"last,omitempty"`
}

func newFlow(c Caller, r CreateRequest) (flow, error) {
	if err := firstOf(c.check(), c.mayAct()); err != nil {
		return flow{}, err
	}
	if r.WorkflowName == "" {
		return flow{}, &Error{Code: BadRequest, Field: "workflow_name", Message: "workflow_name is required"}
	}
	r.Source = cmp.Or(r.Source, "external")
	if err := cmp.Or(text(maxName, "workflow_name", r.WorkflowName), oneOf("source", r.Source, sources...)); err != nil {
		return flow{}, err
	}
	var e *Error
	if err := text(maxTrace, "trace_id", r.TraceID); errors.As(err, &e) {
		return flow{}, &Error{Code: InvalidTraceID, Field: "trace_id", Message: e.Message}
	}
	metadata, _, err := object("metadata", r.Metadata, maxMetadata)
	return flow{Name: r.WorkflowName, Source: r.Source, Metadata: metadata, TraceID: r.TraceID, Status: InProgress}, err
}

var sources = []string{"langgraph", "langchain", "crewai", "external"}

// document is the workflow as written over the document that was read.
func (f flow) document(over ledger.Document) ledger.Document {
	over.State, over.Done, over.Body = string(f.Status), f.Status != InProgress, body(f)
	return over
}

// other is the last step other than this one.
func (f flow) other(stepID string) string {
	for _, id := range slices.Backward(f.Last) {
		if id != stepID {
			return id
		}
	}
	return ""
}

// with is the workflow with one more step.
func (f flow) with(stepID string) flow {
	f.Steps++
	f.Last = append(slices.Clone(f.Last), stepID)
	f.Last = f.Last[max(0, len(f.Last)-2):]
	return f
}

// step is the body of a step's document.
type step struct {
	ID       string  `json:"id"`
	Index    int     `json:"index"`
	Name     string  `json:"name,omitempty"`
	Type     string  `json:"type"`
	Key      string  `json:"idempotency_key,omitempty"`
	Model    string  `json:"model,omitempty"`
	Provider string  `json:"provider,omitempty"`
	Cost     float64 `json:"cost,omitempty"`
	Tokens   [2]int  `json:"tokens"` // in, out
	Risk     string  `json:"risk,omitempty"`
	Asked    asked   `json:"asked"`

	// Decision is the ruling. Answer is the gate's last answer, which a hold may have changed.
	Decision  Decision      `json:"decision"`
	Reason    string        `json:"reason,omitempty"`
	Evaluated []PolicyMatch `json:"evaluated,omitempty"`
	Matched   []PolicyMatch `json:"matched,omitempty"`
	Answer    Decision      `json:"answer"`
	// Prior is the reason for a block where another workflow began the operation. Each gate makes
	// such a decision again.
	Prior *Prior `json:"prior,omitempty"`

	Gates       int       `json:"gates"`
	Completions int       `json:"completions,omitempty"`
	First       time.Time `json:"first"`
	LastGate    time.Time `json:"last_gate"`

	Output      json.RawMessage `json:"output,omitempty"`
	CompletedAt *time.Time      `json:"completed_at,omitempty"`
	CompletedBy string          `json:"completed_by,omitempty"`

	// Allowed reports whether a gate or reviewers ever allowed the step. Since then it may have
	// been carried out, also by a client that does not use leases.
	Allowed bool `json:"allowed,omitempty"`

	Lent   lent            `json:"lent,omitzero"`
	Before json.RawMessage `json:"before,omitempty"`
	Read   *attemptRead    `json:"found,omitempty"`

	Hold    *hold    `json:"hold,omitempty"`
	Holds   int      `json:"holds,omitempty"`
	Reports []Report `json:"heard,omitempty"` // append-only
	Askers  []string `json:"askers,omitempty"`

	// Operation is the write that represents the business operation.
	Operation       ledger.ID `json:"operation,omitempty"`
	OperationDigest string    `json:"operation_digest,omitempty"`
	OperationTool   string    `json:"operation_tool,omitempty"`

	Gated   []gated `json:"gated,omitempty"`
	Earlier []asked `json:"earlier,omitempty"`
}

// lent is the step's current or last lease holder.
type lent struct {
	ID     string    `json:"id,omitempty"`
	Holder string    `json:"holder,omitempty"`
	Fence  int64     `json:"fence,omitempty"` // 0: it was never leased
	First  time.Time `json:"first,omitzero"`  // the first lease
	Until  time.Time `json:"until,omitzero"`
}

// attemptRead is the result of a read, and the attempt that it is for.
type attemptRead struct {
	Verification
	Fence int64 `json:"fence"`
}

// gated is one gate as the rules saw it. The request is kept next to it.
type gated struct {
	At       time.Time `json:"at"`
	Facts    Facts     `json:"facts"`
	Digest   string    `json:"digest"`
	Ruled    Decision  `json:"ruled,omitempty"`
	Decision Decision  `json:"decision"`
	Reason   string    `json:"reason,omitempty"`
	// By is the caller, in the trace. The rules are those that the decision is based on.
	By    string   `json:"by,omitempty"`
	Trace string   `json:"trace,omitempty"`
	Rules []string `json:"rules,omitempty"`
	// Lease reports whether an allowed step was leased.
	Lease leaseResult `json:"lease,omitempty"`
}

func (s step) completed() bool { return s.Completions > 0 }

// status is the approval status, "" if no approval is needed.
func (s step) status() ApprovalStatus {
	if s.Decision != RequireApproval || s.Hold == nil {
		return ""
	}
	return s.Hold.Status
}

// document is the step as written over the document that was read.
func (s step) document(over ledger.Document) ledger.Document {
	over.State, over.Due = stateGated, time.Time{}
	switch {
	case s.status() == Pending:
		over.State = statePending
		if !s.Hold.Overdue {
			over.Due = s.Hold.Until
		}
	case s.completed():
		over.State = stateDone
	}
	over.Body = body(s)
	return over
}

func stepName(workflowID, stepID string) string { return workflowID + "/" + stepID }

// body is JSON in its shortest form: < and > are not escaped.
func body(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil // unencodable JSON is refused on write
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func readFlow(p ledger.Document) (f flow, err error) {
	if err := json.Unmarshal(p.Body, &f); err != nil || f.Status == "" {
		return f, fmt.Errorf("%w: workflow %s: %w", ledger.ErrCorrupt, p.ID, cmp.Or(err, errEmpty))
	}
	return f, nil
}

func readStep(p ledger.Document) (s step, err error) {
	if err := json.Unmarshal(p.Body, &s); err != nil || s.ID == "" || s.Decision == "" {
		return s, fmt.Errorf("%w: step %s: %w", ledger.ErrCorrupt, p.ID, cmp.Or(err, errEmpty))
	}
	return s, nil
}

var errEmpty = fmt.Errorf("it says nothing")

// byGate is recorded as the actor of decisions that no reviewer made.
const byGate = "(gate)"

// recordedName is a name that can be recorded with a decision.
func recordedName(name string) string { return cmp.Or(name, "(unnamed)") }

// mayAct refuses read-only callers.
func (c Caller) mayAct() error {
	if slices.Contains([]engine.Role{"", engine.RoleAgent, engine.RoleReviewer, engine.RoleOperator}, c.Role) {
		return nil
	}
	return &Error{Code: Forbidden, Message: fmt.Sprintf("the role %q reads, and changes nothing", c.Role)}
}

// covers refuses a recorded step outside the caller's scope. Amounts are compared when a step is
// gated: the stored ones may be sealed.
func (c Caller) covers(s step) error {
	w := s.declared()
	if w == nil {
		return outside(c.Scope.CoversCall(s.Asked.toolName(s.ID, nil), nil))
	}
	return outside(c.Scope.Names(w.Destination, w.Kind, w.Write, s.Asked.toolName(s.ID, w)))
}

// outside is a scope's refusal in the contract's words, nil if there is none.
func outside(err error) error {
	var e *engine.ScopeError
	if !errors.As(err, &e) {
		return err
	}
	return &Error{Code: Forbidden, Field: e.Field, Message: e.Error()}
}

// coversAll refuses a workflow that has a step outside the caller's scope.
func (g *Gate) coversAll(ctx context.Context, c Caller, workflowID string) error {
	if c.Scope == nil {
		return nil
	}
	return g.eachStep(ctx, c.Tenant, workflowID, func(_ ledger.Document, s step) error { return c.covers(s) })
}

// mayDecide refuses callers that may not decide about a step.
func (c Caller) mayDecide() error {
	switch c.Role {
	case "", engine.RoleReviewer, engine.RoleOperator:
		return nil
	case engine.RoleAgent:
		return &Error{Code: Forbidden, Message: "an agent never decides about a step; a reviewer must"}
	}
	return &Error{Code: Forbidden, Message: fmt.Sprintf("the role %q decides about no step; a reviewer must", c.Role)}
}
