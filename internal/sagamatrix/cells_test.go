package sagamatrix

import (
	"slices"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/crashtest"
	"github.com/readback-go/readback/ledger"
)

// cell is one situation; a run of it adds the point at which a process fails.
type cell struct {
	plan plan
	// failing is the step whose destination refuses it for good. Default none.
	failing string
	// kind is the fault of the destination of step, once: when the step is written, or when it is
	// undone. Default none.
	fault   faultKind
	step    string
	undoing bool
	// cancelled: an operator cancels the saga when its process has failed.
	cancelled bool
}

func (c cell) String() string {
	text := c.plan.name
	if c.failing != "" {
		text += ", " + c.failing + " refused for good"
	}
	switch {
	case c.cancelled:
		return text + ", cancelled after the failure"
	case c.fault == "":
		return text
	case c.undoing:
		return text + ", undoing of " + c.step + ": " + string(c.fault)
	}
	return text + ", " + c.step + ": " + string(c.fault)
}

// class is how a step may be treated afterwards.
func (p plan) class(step string) intent.Reversibility {
	switch {
	case step == letter && !p.sale, step == order && p.sale:
		return intent.Pivot
	case step == letter:
		return intent.Retryable
	}
	return intent.Compensable
}

// goesBack reports whether the saga goes back when the step fails.
func (p plan) goesBack(step string) bool { return p.class(step) != intent.Retryable }

// all lists every cell that can be.
func all() []cell {
	var cells []cell
	for _, p := range plans {
		cells = append(cells, cell{plan: p, cancelled: true})
		for at, failing := range append([]string{""}, steps...) {
			cells = append(cells, cell{plan: p, failing: failing})
			reached := steps // steps written before the one that fails
			if failing != "" {
				reached = steps[:at-1]
			}
			for _, step := range reached {
				for _, v := range faultKinds {
					if !knows(step, v) {
						continue
					}
					cells = append(cells, cell{plan: p, failing: failing, fault: v, step: step})
					if failing != "" && p.goesBack(failing) && p.class(step) == intent.Compensable && p.onUndoing(step, v) {
						cells = append(cells, cell{plan: p, failing: failing, fault: v, step: step, undoing: true})
					}
				}
			}
		}
	}
	return cells
}

// onUndoing reports whether the fault can apply to the undo of a step. A delete stores nothing
// that could be altered, duplicated or taken back.
func (p plan) onUndoing(step string, v faultKind) bool {
	stores := []faultKind{noField, otherForm, duplicate, rollback}
	return !slices.Contains(stores, v) || p.sale && step == contact && (v == noField || v == otherForm)
}

// end is the end of a saga, by the destinations.
type end string

const (
	done            end = "all done"
	undone          end = "all undone"
	reviewerDecides end = "a reviewer knows"
	half            end = "half done, and not reported"
	wrong           end = "something else than is reported"
	doing           end = "never ends"
)

var ends = []end{done, undone, reviewerDecides, half, wrong, doing}

// want is a possible result of a run, and why it may need a reviewer.
type want struct {
	may []end
	why string
}

// The reasons for a review.
const (
	whyDiffers = "what is there differs from what was declared"
	whyDouble  = "more records are there than were declared"
	whyGone    = "what was seen is gone"
	whyMail    = "it is not known whether the mail went out, and no second one is sent"
	whyAfter   = "the order decided it, and the mail is refused for good"
	whyUndo    = "the destination refuses to undo"
	whyNamed   = "a send was answered, and nothing of it is there"
	whyWhose   = "it is not proven whose effect there is to undo"
)

// wants is what may come of a run, from what was done to it.
func (c cell) wants(at point) want {
	w := c.led()
	if c.mailUnknown(at) && w.why == "" {
		return want{append(w.may, reviewerDecides), whyMail}
	}
	return w
}

// led is what may come of the cell where no process fails, or fails at a moment
// that makes no difference.
func (c cell) led() want {
	usual := want{may: []end{done}}
	switch {
	case c.failing == letter && c.plan.sale:
		usual = want{[]end{reviewerDecides}, whyAfter}
	case c.failing != "":
		usual = want{may: []end{undone}}
	}
	if c.fault == "" {
		return usual
	}
	if c.undoing {
		switch c.fault {
		case refused:
			return want{[]end{reviewerDecides, undone}, whyUndo} // a process that lost the answer tries again
		case noField, otherForm:
			return want{[]end{reviewerDecides}, whyDiffers}
		case phantom:
			if c.plan.sale && c.step == contact { // an update
				return want{append(usual.may, reviewerDecides), whyNamed}
			}
		}
		return usual
	}
	in := intent.WriteIntent{Write: intent.Create, Reversibility: c.plan.class(c.step)}
	if c.plan.sale && c.step == contact {
		in.Write = intent.Update
	}
	if !c.plan.sale && in.Reversibility == intent.Compensable {
		in.OnMismatch = intent.MismatchCompensate
	}
	switch leadsTo(c.step, c.fault, in) {
	case ledger.StatusReview:
		return want{append(usual.may, reviewerDecides), c.whyReview()}
	case ledger.NotApplied: // a process that lost the refusal tries again, and is not refused
		if in.Reversibility == intent.Retryable {
			return usual
		}
		return want{may: append(usual.may, undone), why: usual.why}
	case ledger.Compensated:
		return want{may: []end{undone}}
	}
	return usual
}

func (c cell) whyReview() string {
	switch {
	case c.fault == duplicate:
		return whyDouble
	case c.fault == noField:
		return whyDiffers
	case c.fault == otherForm:
		return whyWhose
	case c.fault == phantom && c.step != letter:
		return whyNamed
	case c.step == letter:
		return whyMail
	}
	return whyGone
}

// mailUnknown reports whether the process failed so that it is unknown whether the mail was sent:
// after its send was announced, and before its result was recorded, with no mail in the mailbox.
func (c cell) mailUnknown(at point) bool {
	if at.Stage.about != letter || at.Fate == crashtest.Lives {
		return false
	}
	noMail := c.failing == letter || c.step == letter && !c.undoing &&
		slices.Contains([]faultKind{refused, throttled, unreachable, cutShort, dropped, phantom}, c.fault)
	switch at.Stage.what {
	case toAnnounce, toReserve:
		return at.Fate == crashtest.After || noMail && at.Nth > 1
	case toSend:
		return noMail || at.Fate == crashtest.Before || at.Fate == crashtest.Suspends
	case toReadBack, toSettle, toReview, toPutBack:
		return noMail
	}
	return false
}
