package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxName is how many characters of a name are shown, maxRules how many rules of one
	// decision are named, and maxWhole how many steps of an operation are shown with all
	// their decisions: no one reads more.
	maxName  = 80
	maxRules = 20
	maxWhole = 20
)

// Ruling is a decision about a step as it is shown: its texts are bounded, and [Safe].
type Ruling struct {
	gate.Entry
	// Who is the actor: "asked by NAME", "decided by NAME", "" for the clock.
	Who string
	// More is how many rules are not named.
	More int
}

// Rulings are the decisions about a step, in order, and how many earlier answers of the
// gate are no longer kept.
func Rulings(t gate.StepTrace) (all []Ruling, left int) {
	entries, left := t.Entries()
	for _, e := range entries {
		r := Ruling{Entry: e, More: max(0, len(e.Rules)-maxRules)}
		switch e.By {
		case gate.TheGate:
			r.Who = "asked by " + actor(e.Name)
		case gate.AReviewer:
			r.Who = "decided by " + actor(e.Name)
		}
		r.Rules = nil
		for _, rule := range e.Rules[:len(e.Rules)-r.More] {
			r.Rules = append(r.Rules, Clip(rule, maxName))
		}
		r.What, r.Why, r.Trace = Clip(e.What, maxText), Sentence(e.Why), TraceID(e.Trace)
		r.Asked, r.Known = Clip(e.Asked, maxText), Clip(e.Known, maxText)
		all = append(all, r)
	}
	return all, left
}

// LastAsked is who asked the gate for a step last, and when; "" and zero where that is not
// kept.
func LastAsked(t gate.StepTrace) (by string, at time.Time) {
	last, ok := t.Last()
	if !ok {
		return "", at
	}
	return actor(last.Name), last.At
}

// actor is a name in its displayed form.
func actor(name string) string {
	if name == "" {
		return "a caller without a name"
	}
	return Clip(name, maxName)
}

// Step is a step with all its decisions, and what an operator or reviewer can do about it.
func Step(t gate.StepTrace) string { return step(t) + stepNext(t) }

func step(t gate.StepTrace) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  step %q of workflow %s (%q)\n", strings.ToUpper(t.Status()), Clip(t.StepID, maxName), Clip(t.WorkflowID, maxName), Clip(t.WorkflowName, maxName))
	if t.Reason != "" {
		b.WriteString(Paragraph(Sentence(t.Reason), ""))
	}
	var rows []string
	if t.IdempotencyKey != "" {
		rows = append(rows, fmt.Sprintf("operation\t%q of tool %q", Clip(t.IdempotencyKey, maxName), Clip(t.Tool, maxName)))
	}
	if t.WriteID != "" {
		rows = append(rows, "write\t"+Safe(t.WriteID))
	}
	if p := t.Prior; p != nil {
		rows = append(rows, fmt.Sprintf("in its way\twrite %s of step %q of workflow %s, then %s", Safe(p.PriorWriteID), Clip(p.PriorStepID, maxName), Clip(p.PriorWorkflowID, maxName), Safe(p.PriorState)))
	}
	if t.CompletedAt != nil {
		rows = append(rows, fmt.Sprintf("completed\t%s, as %s reported", Moment(*t.CompletedAt), actor(t.CompletedBy)))
	}
	b.WriteString(table("  ", rows...))
	all, left := Rulings(t)
	if left > 0 {
		fmt.Fprintf(&b, "  %d earlier answers of the gate are not kept any more.\n", left)
	}
	for _, one := range all {
		b.WriteString(one.text())
	}
	return b.String()
}

func (r Ruling) text() string {
	text := fmt.Sprintf("  %s  %s.\n", Moment(r.At), r.What)
	say := func(format string, args ...any) { text += Paragraph(fmt.Sprintf(format, args...), "      ") }
	if r.Why != "" {
		say("Why: %s", r.Why)
	}
	switch r.By {
	case gate.TheGate:
		say("%s: %s.", upper(r.Who), r.Asked)
		say("Known: %s", Sentence(r.Known))
	case gate.AReviewer:
		say("%s.", upper(r.Who))
	}
	if names := r.Rules; len(names) > 0 {
		if r.More > 0 {
			names = append(names, fmt.Sprintf("and %d more", r.More))
		}
		say("Rules: %s.", strings.Join(names, ", "))
	}
	if r.Trace != "" {
		say("In trace %s.", r.Trace)
	}
	return text
}

func stepNext(t gate.StepTrace) string {
	switch p := t.Prior; {
	case t.CompletedAt != nil:
		return ""
	case t.Waits:
		return "\nA reviewer decides: approve or reject it in the review UI or at the gate.\n"
	case t.Decision == gate.Block && p != nil:
		return fmt.Sprintf("\nWhat became of the other one:\n  readback show %s\n", Safe(p.PriorWriteID))
	case t.Decision == gate.Block && ruledOut(t):
		return "\nIt stays so, however often it is asked for, until it is gated with \"retry_policy\": \"reevaluate\".\n"
	}
	return ""
}

// ruledOut reports whether rules block a step. Rules are not evaluated again for a step
// whose approval was denied.
func ruledOut(t gate.StepTrace) bool {
	refused := slices.ContainsFunc(t.Reports, func(h gate.Report) bool {
		return h.Decision == gate.Rejected || h.Decision == gate.Expired
	})
	return !refused && len(t.Decisions) > 0 && t.Decisions[len(t.Decisions)-1].Decision == gate.Block
}

// stepTable is a row for each step, with the last decision about it.
func stepTable(all []gate.StepTrace, flows bool, now time.Time) string {
	rows := []string{"STEP\tSTATUS\tGATED\tLAST ASKED\tBY\tWHY"}
	for _, t := range all {
		name := Clip(t.StepID, maxName)
		if flows {
			name = Clip(t.WorkflowID, maxName) + "/" + name
		}
		by, at := LastAsked(t)
		rows = append(rows, strings.Join([]string{name, t.Status(), fmt.Sprint(t.Gates), agoOrNone(at, now), cmp.Or(by, "-"), Clip(t.Reason, cell)}, "\t"))
	}
	return table("", rows...)
}

// Workflow is what is known of a workflow.
type Workflow struct {
	Workflow string `json:"workflow"`
	// Gate is set if it was begun at the gate.
	Gate *gate.StepList `json:"gate,omitempty"`
	// Writes are the newest with its name; More reports that there are others.
	Writes []ledger.Record `json:"writes"`
	More   bool            `json:"more_writes,omitempty"`
}

// Text formats a workflow for a reader. partly says that there are writes which cannot be
// read.
func (w Workflow) Text(partly bool, now time.Time) string {
	var b strings.Builder
	if l := w.Gate; l != nil {
		trace, why := "", ""
		if l.TraceID != "" {
			trace = ", trace " + Clip(l.TraceID, maxName)
		}
		if l.Reason != "" {
			why = ": " + Clip(l.Reason, maxText)
		}
		fmt.Fprintf(&b, "%s  %q, %s, begun %s%s\n", Safe(l.WorkflowID), Clip(l.WorkflowName, maxName), Word(l.Status), Ago(l.StartedAt, now), trace)
		if l.EndedAt != nil {
			b.WriteString(Paragraph(fmt.Sprintf("Ended %s by %s%s.", Ago(*l.EndedAt, now), actor(l.EndedBy), why), ""))
		}
		b.WriteString("\n" + stepPage(l, now))
	} else {
		fmt.Fprintf(&b, "%s was not begun at the gate; these writes name it.\n", Safe(w.Workflow))
	}
	if len(w.Writes) > 0 || w.More {
		b.WriteString("\nWrites:\n" + List(w.Writes, partly, now))
	}
	if w.More {
		b.WriteString("There are more; these are the newest.\n")
	}
	return b.String()
}

// stepPage is a page of the steps of a workflow.
func stepPage(l *gate.StepList, now time.Time) string {
	switch {
	case l.Total == 0:
		return "No step of it asked the gate.\n"
	case len(l.Steps) == 0:
		return fmt.Sprintf("It has %d steps, and none behind --offset %d.\n", l.Total, l.Offset)
	}
	text := fmt.Sprintf("Steps %d to %d of %d:\n", l.Offset+1, l.Offset+len(l.Steps), l.Total) + stepTable(l.Steps, false, now)
	if next := l.More(); next > 0 {
		text += fmt.Sprintf("More: --offset %d\n", next)
	}
	return text + fmt.Sprintf("`readback workflow show %s STEP` shows all that was decided about one.\n", Safe(l.WorkflowID))
}
