package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// hold is a step that a reviewer must approve. Its request cannot change while it is pending.
type hold struct {
	Number       int              `json:"number"` // 1 is the step's first
	Digest       string           `json:"digest"` // of the request
	Reason       string           `json:"reason,omitempty"`
	Status       ApprovalStatus   `json:"status"`
	Need         int              `json:"need"`
	Since        time.Time        `json:"since"`
	Until        time.Time        `json:"until"`
	OnTimeout    policies.Timeout `json:"on_timeout"`
	Overdue      bool             `json:"overdue,omitempty"`
	Agreed       []string         `json:"agreed,omitempty"`
	By           string           `json:"by,omitempty"` // the actor of the last decision
	At           *time.Time       `json:"at,omitempty"`
	RejectReason string           `json:"said,omitempty"` // the reason for a refusal
}

// newHold is the step's next hold.
func (s step) newHold(h policies.Hold, reason string, now time.Time) *hold {
	return &hold{
		Number: s.Holds + 1, Digest: s.Asked.Digest, Reason: reason, Status: Pending, Need: max(h.Approvers, 1),
		Since: now, Until: now.Add(h.Within), OnTimeout: cmp.Or(h.OnTimeout, policies.OnTimeoutDeny),
	}
}

// over reports whether the deadline has passed and the expiry is not recorded yet.
func (h *hold) over(now time.Time) bool {
	return h != nil && h.Status == Pending && !h.Overdue && !now.Before(h.Until)
}

// lapsed is the step after its deadline, and the events for its operation.
func (s step) lapsed(now time.Time) (step, []ledger.Event) {
	if s.status() != Pending || !s.Hold.over(now) {
		return s, nil
	}
	h := *s.Hold
	h.Overdue = true
	mark := Report{Hold: h.Number, At: now, Decision: Pending, Digest: h.Digest, Reason: "no reviewer decided in time; it still waits"}
	events := []ledger.Event{{Kind: ledger.EvOverdue, Rule: "timeout", Reason: mark.Reason}}
	if h.OnTimeout != policies.OnTimeoutEscalate {
		h.Status, h.At, h.Overdue = Expired, &now, false
		mark.Decision, mark.Reason = Expired, "no reviewer approved it in time"
		events = []ledger.Event{{Kind: ledger.EvSettled, Settlement: ledger.Expired, Rule: "timeout", Reason: mark.Reason}}
	}
	s.Hold, s.Reports = &h, append(slices.Clone(s.Reports), mark)
	return s, events
}

// approvalSpace is the contract's namespace of approval IDs.
var approvalSpace = uuid.MustParse("a1b2c3d4-e5f6-7890-abcd-ef1234567890")

// approvalID names the hold of a step, derived as the contract requires.
func approvalID(workflowID, stepID string, number int) string {
	name := workflowID + ":" + stepID
	if number > 1 {
		name += "#" + strconv.Itoa(number)
	}
	return uuid.NewSHA1(approvalSpace, []byte(name)).String()
}

// approved is the step after one more approval.
func (s step) approved(by, reason string, now time.Time) (step, ledger.Event) {
	h := *s.Hold
	h.Agreed = append(slices.Clone(h.Agreed), by)
	ev := ledger.Event{Kind: ledger.EvAgreed, By: by, Rule: "person", Reason: reason, Digest: s.OperationDigest}
	h.By, h.At = by, &now
	if len(h.Agreed) >= h.Need {
		h.Status, ev.Kind, s.Allowed = Approved, ledger.EvApproved, true
	}
	s.Hold = &h
	s.Reports = append(slices.Clone(s.Reports), Report{Hold: h.Number, By: by, At: now, Decision: Approved, Digest: h.Digest, Reason: reason})
	return s, ev
}

// refused is the step after a reviewer's rejection or the end of its workflow.
func (s step) refused(by, reason string, now time.Time) (step, []ledger.Event) {
	h := *s.Hold
	h.Status, h.By, h.At, h.RejectReason = Rejected, by, &now, reason
	s.Hold = &h
	s.Reports = append(slices.Clone(s.Reports), Report{Hold: h.Number, By: by, At: now, Decision: Rejected, Digest: h.Digest, Reason: reason})
	return s, []ledger.Event{{Kind: ledger.EvSettled, Settlement: ledger.Denied, By: by, Rule: "person", Reason: reason}}
}

// fitting returns the events about a hold that still apply to a write. A write that has left the
// held state was released once. Only a step that was never allowed is known to have had no
// effect.
func (s step) fitting(rec ledger.Record, events []ledger.Event) []ledger.Event {
	if len(events) == 0 || rec.State == ledger.Settled || rec.State == ledger.Review {
		return nil
	}
	if rec.State == ledger.Held {
		return events
	}
	if events[0].Kind != ledger.EvSettled || s.Allowed {
		return nil
	}
	ended := events[0]
	ended.Settlement, ended.Reason = ledger.NotApplied, fmt.Sprintf("no caller was ever allowed to do it, and then it was %s: %s", events[0].Settlement, events[0].Reason)
	return []ledger.Event{ended}
}
