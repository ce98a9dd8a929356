package workflow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

// Kinds of papers, and the words that steps are found by.
const (
	kindWorkflow = "workflow"
	kindStep     = "step"

	statePending = "pending" // waits for a person
	stateGated   = "gated"
	stateDone    = "completed"
)

// flow is the body of a workflow's paper.
type flow struct {
	Name     string          `json:"name"`
	Source   string          `json:"source"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	TraceID  string          `json:"trace_id,omitempty"`
	Status   Status          `json:"status"`
	Reason   string          `json:"reason,omitempty"`
	EndedBy  string          `json:"ended_by,omitempty"`
	EndedAt  *time.Time      `json:"ended_at,omitempty"`
	// Steps is how many steps were gated, Last the last two of them.
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

// paper is the workflow as it is filed over the paper that was read.
func (f flow) paper(over ledger.Paper) ledger.Paper {
	over.State, over.Done, over.Body = string(f.Status), f.Status != InProgress, body(f)
	return over
}

// other is the last step that is not this one.
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

// step is the body of a step's paper.
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

	// Decision is what was ruled; Answer what the last gate said, which a hold
	// may have made another.
	Decision  Decision      `json:"decision"`
	Reason    string        `json:"reason,omitempty"`
	Evaluated []PolicyMatch `json:"evaluated,omitempty"`
	Matched   []PolicyMatch `json:"matched,omitempty"`
	Answer    Decision      `json:"answer"`
	// Prior is why it is blocked, where another workflow began the operation:
	// such a decision is made anew with each gate.
	Prior *Prior `json:"prior,omitempty"`

	Gates       int       `json:"gates"`
	Completions int       `json:"completions,omitempty"`
	First       time.Time `json:"first"`
	LastGate    time.Time `json:"last_gate"`

	Output      json.RawMessage `json:"output,omitempty"`
	CompletedAt *time.Time      `json:"completed_at,omitempty"`
	CompletedBy string          `json:"completed_by,omitempty"`

	// Allowed says that a gate once said allow, or that people did: since then it
	// may have been carried out, also by a client that knows no lease.
	Allowed bool `json:"allowed,omitempty"`

	Lent   lent            `json:"lent,omitzero"`
	Before json.RawMessage `json:"before,omitempty"`
	Found  *found          `json:"found,omitempty"`

	Hold   *hold    `json:"hold,omitempty"`
	Holds  int      `json:"holds,omitempty"`
	Heard  []Heard  `json:"heard,omitempty"` // only ever appended to
	Askers []string `json:"askers,omitempty"`

	// Operation is the write that stands for the business operation.
	Operation       ledger.ID `json:"operation,omitempty"`
	OperationDigest string    `json:"operation_digest,omitempty"`
	OperationTool   string    `json:"operation_tool,omitempty"`

	Gated   []gated `json:"gated,omitempty"`
	Earlier []asked `json:"earlier,omitempty"`
}

// lent is who has, or last had, the step.
type lent struct {
	ID     string    `json:"id,omitempty"`
	Holder string    `json:"holder,omitempty"`
	Fence  int64     `json:"fence,omitempty"` // 0: it was never lent
	First  time.Time `json:"first,omitzero"`  // when it was lent for the first time
	Until  time.Time `json:"until,omitzero"`
}

// found is what a look found, and for which attempt.
type found struct {
	Verification
	Fence int64 `json:"fence"`
}

// gated is one gate as rules saw it; what was asked for stands beside it.
type gated struct {
	At       time.Time `json:"at"`
	Facts    Facts     `json:"facts"`
	Digest   string    `json:"digest"`
	Ruled    Decision  `json:"ruled,omitempty"`
	Decision Decision  `json:"decision"`
	Reason   string    `json:"reason,omitempty"`
	// By asked, in the trace, and the rules are those that the decision goes back
	// to.
	By    string   `json:"by,omitempty"`
	Trace string   `json:"trace,omitempty"`
	Rules []string `json:"rules,omitempty"`
	// Lease says whether an allowed step was lent.
	Lease LeaseWord `json:"lease,omitempty"`
}

func (s step) completed() bool { return s.Completions > 0 }

// status is where the approval stands, "" when none is needed.
func (s step) status() ApprovalStatus {
	if s.Decision != RequireApproval || s.Hold == nil {
		return ""
	}
	return s.Hold.Status
}

// paper is the step as it is filed over the paper that was read.
func (s step) paper(over ledger.Paper) ledger.Paper {
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

// body is JSON that is no longer than it must be: < and > stay as they are.
func body(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil // what cannot be written is no JSON, and is refused where it is filed
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func readFlow(p ledger.Paper) (f flow, err error) {
	if err := json.Unmarshal(p.Body, &f); err != nil || f.Status == "" {
		return f, fmt.Errorf("%w: workflow %s: %w", ledger.ErrCorrupt, p.ID, cmp.Or(err, errEmpty))
	}
	return f, nil
}

func readStep(p ledger.Paper) (s step, err error) {
	if err := json.Unmarshal(p.Body, &s); err != nil || s.ID == "" || s.Decision == "" {
		return s, fmt.Errorf("%w: step %s: %w", ledger.ErrCorrupt, p.ID, cmp.Or(err, errEmpty))
	}
	return s, nil
}

var errEmpty = fmt.Errorf("it says nothing")

// byGate is kept for what no person decided.
const byGate = "(gate)"

// person is a name that can be kept with a decision.
func person(name string) string { return cmp.Or(name, "(unnamed)") }

// mayAct refuses who only looks.
func (c Caller) mayAct() error {
	if slices.Contains([]engine.Role{"", engine.RoleAgent, engine.RoleReviewer, engine.RoleOperator}, c.Role) {
		return nil
	}
	return &Error{Code: Forbidden, Message: fmt.Sprintf("the role %q reads, and changes nothing", c.Role)}
}

// mayDecide refuses whom no decision about a step is allowed.
func (c Caller) mayDecide() error {
	switch c.Role {
	case "", engine.RoleReviewer, engine.RoleOperator:
		return nil
	case engine.RoleAgent:
		return &Error{Code: Forbidden, Message: "an agent never decides about a step; a reviewer must"}
	}
	return &Error{Code: Forbidden, Message: fmt.Sprintf("the role %q decides about no step; a reviewer must", c.Role)}
}
