package gate

import (
	"context"

	"github.com/readback-go/readback/ledger"
)

// Comment is a reviewer's comment on a decision.
type Comment struct {
	// Comment is the reason. Default none.
	Comment string
	// ApprovalID names the hold that the reviewer saw, as the gate and [PendingApproval] report
	// it. A decision applies to that hold only. Default: the step's current hold.
	ApprovalID string
}

// Approve approves a held step, or adds one of several required approvals. It fails with an
// [Error]: [Forbidden] for agents, for the caller that gated the step and for a reviewer who has
// already approved it; [ApprovalExpired] after the deadline.
func (g *Gate) Approve(ctx context.Context, c Caller, workflowID, stepID string, w Comment) (ApprovalResult, error) {
	return g.judge(ctx, c, workflowID, stepID, w, true)
}

// Reject refuses a held step and aborts its workflow. The caller that gated the step and its
// earlier approvers may reject it too; otherwise it fails as [Gate.Approve] does.
func (g *Gate) Reject(ctx context.Context, c Caller, workflowID, stepID string, w Comment) (ApprovalResult, error) {
	return g.judge(ctx, c, workflowID, stepID, w, false)
}

func (g *Gate) judge(ctx context.Context, c Caller, workflowID, stepID string, w Comment, approve bool) (ApprovalResult, error) {
	field := "comment"
	if !approve {
		field = "reason"
	}
	if err := firstOf(c.check(), c.mayDecide(), checkIDs(workflowID, stepID), text(maxReason, field, w.Comment), text(maxName, "approval_id", w.ApprovalID)); err != nil {
		return ApprovalResult{}, err
	}
	q := judging{opts: g.options(), who: c, workflowID: workflowID, stepID: stepID, comment: w, approve: approve}
	decide := q.decide
	if !approve {
		e := g.ender(c, workflowID, Aborted, "step "+stepID+" was rejected")
		decide = func(d documents) (plan, error) {
			p, err := q.decide(d)
			if err != nil || p.need != needNothing || p.refusal != nil {
				return p, err
			}
			return e.others(ctx, d, p, stepID)
		}
	}
	p, err := g.carry(ctx, c.Tenant, workflowID, stepID, decide)
	return p.result, q.opts.redacted(c.Tenant, err)
}

// judging is one decision of a reviewer.
type judging struct {
	opts               *Options
	who                Caller
	workflowID, stepID string
	comment            Comment
	approve            bool
}

func (q judging) decide(d documents) (plan, error) {
	switch {
	case !d.known:
		return plan{}, &Error{Code: NotFound, Message: "Step not found"}
	case d.step.Hold == nil || d.step.status() == "":
		return plan{}, &Error{Code: NoApprovalNeeded, Message: "the step needs no approval"}
	}
	s, late := d.step.lapsed(d.now)
	if s.status() == Expired && len(late) == 0 {
		return plan{}, expired()
	}
	if d.flow.Status != InProgress {
		return plan{}, terminal(d)
	}
	if s.status() != Pending && len(late) == 0 {
		return plan{}, &Error{Code: NotPending, Message: "the step's approval is " + string(s.status())}
	}
	if seen := q.comment.ApprovalID; seen != "" && seen != approvalID(q.workflowID, q.stepID, s.Hold.Number) {
		return plan{}, &Error{Code: NotPending, Field: "approval_id", Message: "this approval is not the one that the step waits for now; read the step again"}
	}
	if s.Operation != "" && d.rec == nil {
		return plan{need: needRecord}, nil
	}
	if s.status() == Expired { // the expiry is recorded
		return plan{step: &s, events: s.onRecord(d.rec, late), refusal: expired()}, nil
	}
	by := recordedName(q.who.Name)
	if err := q.mayJudge(s, by); err != nil {
		return plan{}, err
	}
	events := late
	q.opts.clean(q.who.Tenant, &q.comment.Comment, s)
	if q.approve {
		next, ev := s.approved(by, q.comment.Comment, d.now)
		s, events = next, append(events, ev)
	} else {
		next, evs := s.refused(by, q.comment.Comment, d.now)
		s, events = next, append(events, evs...)
	}
	result := q.result(s)
	q.opts.clean(q.who.Tenant, &result, s)
	return plan{step: &s, events: s.onRecord(d.rec, events), result: result}, nil
}

func expired() error {
	return &Error{Code: ApprovalExpired, Message: "the time for this approval is over; gate another step"}
}

// mayJudge stops reviewers from approving their own requests and from approving twice. Within the
// embedder's own process a name is not required.
func (q judging) mayJudge(s step, by string) error {
	if !q.approve {
		return nil
	}
	trusted := q.who.Name == "" && q.who.Role == ""
	switch {
	case ledger.AmongNames(s.Hold.Agreed, by):
		return &Error{Code: Forbidden, Message: by + " has approved this step already; another reviewer must as well"}
	case q.who.Role != "" && ledger.SameName(q.who.Name, ""):
		return &Error{Code: Forbidden, Message: "an approval needs a reviewer's name"}
	case !trusted && len(s.Askers) > maxAskers:
		return &Error{Code: Forbidden, Message: "too many different callers gated this step: the gate cannot tell whether a reviewer is one of them; gate another step"}
	case !trusted && ledger.AmongNames(s.Askers, by):
		return &Error{Code: Forbidden, Message: by + " asked for this step; another reviewer must approve it"}
	}
	return nil
}

func (q judging) result(s step) ApprovalResult {
	decision, reason := s.answer()
	h := s.Hold
	r := ApprovalResult{
		WorkflowID: q.workflowID, StepID: q.stepID, Status: string(h.Status), Decision: decision, Reason: reason, ApprovalStatus: h.Status,
		ApprovalID: approvalID(q.workflowID, q.stepID, h.Number), PoliciesMatched: s.Matched, RetryContext: s.retryContext(s.Answer, false),
	}
	switch h.Status {
	case Approved:
		r.ApprovedBy, r.ApprovedAt, r.Message = h.By, h.At, "Step approved"
	case Rejected:
		r.RejectedBy, r.RejectedAt, r.Message = h.By, h.At, "Step rejected; the workflow is aborted"
	default:
		r.Message = "Approved by " + h.By + "; another reviewer must approve it as well"
	}
	return r
}
