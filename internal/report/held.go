package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/ledger"
)

// approvals are the rows about a held write: which reviewers must approve what, which
// have, and until when.
func approvals(r ledger.Record, now time.Time) []string {
	if r.State != ledger.Held {
		return nil
	}
	have := "approvals\t" + Approvals(r)
	if missing := r.Need - len(r.Agreed); missing > 1 {
		have += fmt.Sprintf("; %d different reviewers must still approve", missing)
	}
	rows := []string{have}
	switch {
	case r.Overdue:
		rows = append(rows, "overdue\tno reviewer approved it in time; it continues to wait")
	case r.Due.IsZero():
	case r.Due.After(now):
		rows = append(rows, fmt.Sprintf("until\t%s (%s)", Moment(r.Due), Ago(r.Due, now)))
	default:
		rows = append(rows, fmt.Sprintf("was until\t%s (%s); it can be approved no more", Moment(r.Due), Ago(r.Due, now)))
	}
	if r.RequestedBy != "" {
		rows = append(rows, "asked by\t"+Clip(r.RequestedBy, cell)+", who may not approve it")
	}
	return append(rows, "digest\t"+Clip(r.Digest, maxValue))
}

// Approvals is how many reviewers have approved a held write, and which.
func Approvals(r ledger.Record) string {
	text, sep := fmt.Sprintf("%d of %d", len(r.Agreed), max(r.Need, 1)), ": "
	for _, name := range r.Agreed {
		text, sep = text+sep+Clip(name, maxName), ", "
	}
	return text
}

// Holds counts held writes of a tenant.
type Holds struct {
	Soon    int // can be approved for less than [soonOver]
	Overdue int // were not approved in time, and still wait
}

// soonOver is when the time of a held write is short: a reviewer who is notified can
// still act.
const soonOver = time.Hour

// Count adds a held write at the ledger's time.
func (h Holds) Count(r ledger.Record, now time.Time) Holds {
	switch {
	case r.State != ledger.Held:
	case r.Overdue:
		h.Overdue++
	case !r.Due.IsZero() && r.Due.Sub(now) < soonOver:
		h.Soon++
	}
	return h
}

func (h Holds) text() string {
	text := ""
	if h.Soon > 0 {
		text += fmt.Sprintf("; the time of %d of them is over within %s", h.Soon, Wait(soonOver))
	}
	if h.Overdue > 0 {
		text += fmt.Sprintf("; %d are overdue", h.Overdue)
	}
	return text
}

// ownWrite describes a write that the step makes itself.
func ownWrite(r ledger.Record) string {
	what := ""
	if r.Kind != "" || r.Destination != "" {
		what = fmt.Sprintf(", %s at %q", Safe(r.Kind), Safe(r.Destination))
	}
	return fmt.Sprintf("%s by step %q of workflow %q itself%s", Safe(r.Tool), Safe(r.Step), Safe(r.Workflow), what)
}

// nextOwn is how to continue a write that its caller makes itself.
func nextOwn(r ledger.Record) string {
	switch r.State {
	case ledger.Held:
		return fmt.Sprintf("approve or reject step %q of workflow %q at the gate", Safe(r.Step), Safe(r.Workflow))
	case ledger.Review:
		return fmt.Sprintf("readback review %s accept|abandon --by NAME --reason TEXT", r.ID)
	}
	return ""
}

// Operation is what is known of a business operation.
type Operation struct {
	Tool    string   `json:"tool"`
	Key     string   `json:"idempotency_key"`
	Holders []Holder `json:"holders"`
	// Past are its newest writes that block no other one any more; MorePast reports that
	// there may be others.
	Past     []ledger.Record `json:"past"`
	MorePast bool            `json:"more_past,omitempty"`
	// Steps are those that asked the gate for it, with their decisions; MoreSteps reports
	// that older ones were not searched.
	Steps     []gate.StepTrace `json:"steps"`
	MoreSteps bool             `json:"more_steps,omitempty"`
}

// Text formats an operation for a reader: its current holder, its failed writes, and the
// gate's decisions about the steps that asked for it.
func (o Operation) Text(now time.Time) string {
	var b strings.Builder
	if len(o.Holders) == 0 {
		fmt.Fprintf(&b, "No write has begun operation %q of tool %q here, or it blocks no other any more.\n", Safe(o.Key), Safe(o.Tool))
	} else {
		fmt.Fprintf(&b, "Operation %q of tool %q\n", Safe(o.Key), Safe(o.Tool))
	}
	for _, h := range o.Holders {
		r := h.Record
		fmt.Fprintf(&b, "\n%s  %s, begun %s\n  %s\n", r.ID, phase(r), Ago(r.Created, now), Subject(r))
		rows := []string{fmt.Sprintf("workflow\t%s", Safe(r.Workflow)), fmt.Sprintf("step\t%s", Safe(r.Step))}
		if h.Outcome != "" {
			rows = append(rows, "outcome\t"+Clip(h.Outcome, 2*maxValue))
		}
		rows = append(rows, "stops others\t"+h.why(now))
		b.WriteString(table("  ", rows...))
		if h.Blocks {
			b.WriteString(letting(r))
		}
	}
	if len(o.Past) > 0 {
		b.WriteString("\nWrites of it that block no other:\n" + List(o.Past, false, now))
	}
	if o.MorePast {
		b.WriteString("There may be more; the review UI finds all of them by the idempotency key.\n")
	}
	if len(o.Steps) > 0 {
		b.WriteString("\nWhat was decided about the steps that asked the gate for it:\n")
	}
	for _, t := range o.Steps[:min(len(o.Steps), maxWhole)] {
		b.WriteString("\n" + step(t))
	}
	if others := o.Steps[min(len(o.Steps), maxWhole):]; len(others) > 0 {
		b.WriteString("\nOthers:\n" + stepTable(others, true, now))
	}
	if o.MoreSteps {
		b.WriteString("\nThere are more steps that are not completed than were read: `readback workflow show WORKFLOW` finds those of a workflow.\n")
	}
	return b.String()
}

// letting is how the operation of a write is released: a write that waits for approval is
// denied; one that is being sent or undone must end first.
func letting(r ledger.Record) string {
	switch r.State {
	case ledger.Held:
		return "  " + Next(r) + "\n"
	case ledger.Sending, ledger.Compensating:
		return ""
	}
	return fmt.Sprintf("  readback operation release --id %s --by NAME --reason TEXT\n", r.ID)
}

// Holder is one write of a business operation.
type Holder struct {
	Record ledger.Record `json:"record"`
	// Blocks reports whether it blocks another workflow's write now. Until is when that
	// ends: zero for as long as it is open.
	Blocks bool      `json:"blocks"`
	Until  time.Time `json:"until,omitzero"`
	// Outcome is the outcome of a settled write, as a sentence.
	Outcome string `json:"outcome,omitempty"`
}

func (h Holder) why(now time.Time) string {
	switch {
	case h.Record.Yielded:
		return "no: an operator released the operation"
	case !h.Blocks:
		return "no"
	case h.Until.IsZero():
		return "yes, for as long as it is open"
	}
	return fmt.Sprintf("yes, until %s (%s)", Moment(h.Until), Ago(h.Until, now))
}
