package workflow

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

// hold is a step that a person must approve. It is about what was asked for
// then: while it is pending that cannot change.
type hold struct {
	Number    int              `json:"number"` // 1 is the step's first
	Digest    string           `json:"digest"` // of what was asked for
	Reason    string           `json:"reason,omitempty"`
	Status    ApprovalStatus   `json:"status"`
	Need      int              `json:"need"`
	Since     time.Time        `json:"since"`
	Until     time.Time        `json:"until"`
	OnTimeout policies.Timeout `json:"on_timeout"`
	Overdue   bool             `json:"overdue,omitempty"`
	Agreed    []string         `json:"agreed,omitempty"`
	By        string           `json:"by,omitempty"` // who decided last
	At        *time.Time       `json:"at,omitempty"`
	Said      string           `json:"said,omitempty"` // why it was refused
}

// newHold is the step's next hold.
func (s step) newHold(h policies.Hold, reason string, now time.Time) *hold {
	return &hold{
		Number: s.Holds + 1, Digest: s.Asked.Digest, Reason: reason, Status: Pending, Need: max(h.Approvers, 1),
		Since: now, Until: now.Add(h.Within), OnTimeout: cmp.Or(h.OnTimeout, policies.OnTimeoutDeny),
	}
}

// over reports whether the time for an approval is over and nobody has said so yet.
func (h *hold) over(now time.Time) bool {
	return h != nil && h.Status == Pending && !h.Overdue && !now.Before(h.Until)
}

// lapsed is the step as time has made it, and what that means for its operation.
func (s step) lapsed(now time.Time) (step, []ledger.Event) {
	if s.status() != Pending || !s.Hold.over(now) {
		return s, nil
	}
	h := *s.Hold
	h.Overdue = true
	mark := Heard{Hold: h.Number, At: now, Decision: Pending, Digest: h.Digest, Reason: "nobody decided in time; it goes on waiting"}
	events := []ledger.Event{{Kind: ledger.EvOverdue, Rule: "timeout", Reason: mark.Reason}}
	if h.OnTimeout != policies.OnTimeoutEscalate {
		h.Status, h.At, h.Overdue = Expired, &now, false
		mark.Decision, mark.Reason = Expired, "nobody approved it in time"
		events = []ledger.Event{{Kind: ledger.EvSettled, Settlement: ledger.Expired, Rule: "timeout", Reason: mark.Reason}}
	}
	s.Hold, s.Heard = &h, append(slices.Clone(s.Heard), mark)
	return s, events
}

// approvalSpace is the contract's namespace of approval ids.
var approvalSpace = uuid.MustParse("a1b2c3d4-e5f6-7890-abcd-ef1234567890")

// approvalID names the hold of a step, as the contract derives it.
func approvalID(workflowID, stepID string, number int) string {
	name := workflowID + ":" + stepID
	if number > 1 {
		name += "#" + strconv.Itoa(number)
	}
	return uuid.NewSHA1(approvalSpace, []byte(name)).String()
}

// approved is the step after one more person approved it.
func (s step) approved(by, reason string, now time.Time) (step, ledger.Event) {
	h := *s.Hold
	h.Agreed = append(slices.Clone(h.Agreed), by)
	ev := ledger.Event{Kind: ledger.EvAgreed, By: by, Rule: "person", Reason: reason, Digest: s.OperationDigest}
	h.By, h.At = by, &now
	if len(h.Agreed) >= h.Need {
		h.Status, ev.Kind, s.Allowed = Approved, ledger.EvApproved, true
	}
	s.Hold = &h
	s.Heard = append(slices.Clone(s.Heard), Heard{Hold: h.Number, By: by, At: now, Decision: Approved, Digest: h.Digest, Reason: reason})
	return s, ev
}

// refused is the step after a person, or the end of its workflow, refused it.
func (s step) refused(by, reason string, now time.Time) (step, []ledger.Event) {
	h := *s.Hold
	h.Status, h.By, h.At, h.Said = Rejected, by, &now, reason
	s.Hold = &h
	s.Heard = append(slices.Clone(s.Heard), Heard{Hold: h.Number, By: by, At: now, Decision: Rejected, Digest: h.Digest, Reason: reason})
	return s, []ledger.Event{{Kind: ledger.EvSettled, Settlement: ledger.Denied, By: by, Rule: "person", Reason: reason}}
}

// fitting are those of the events about a hold that a write is still to be told.
// One that is not held any more is not held by the gate: it was let go once, and
// only what nobody was ever allowed to do is known to have come to nothing.
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
	ended.Settlement, ended.Reason = ledger.NotApplied, fmt.Sprintf("nobody was ever allowed to do it, and then it was %s: %s", events[0].Settlement, events[0].Reason)
	return []ledger.Event{ended}
}
