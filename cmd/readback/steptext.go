package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/report"
)

const (
	// maxSaid and maxNameShown are how many characters of a sentence and of a name are
	// shown, maxRulesShown how many rules of one decision are named. --json has all.
	maxSaid       = 600
	maxNameShown  = 80
	maxRulesShown = 20
)

// operationText is a business operation for a reader: its current holder, its failed
// writes, and the gate's decisions about the steps that asked for it.
func operationText(o operationAnswer, now time.Time) string {
	var b strings.Builder
	b.WriteString(report.Operation(o.Tool, o.Key, o.Holders, now))
	if len(o.Past) > 0 {
		b.WriteString("\nWrites of it that stop nobody:\n" + report.List(o.Past, false, now))
	}
	if o.MorePast {
		b.WriteString("There may be more; the desk finds all of them by the idempotency key.\n")
	}
	if len(o.Steps) > 0 {
		b.WriteString("\nWhat was decided about the steps that asked the gate for it:\n")
	}
	for _, t := range o.Steps[:min(len(o.Steps), maxStepsWhole)] {
		b.WriteString("\n" + stepText(t))
	}
	if others := o.Steps[min(len(o.Steps), maxStepsWhole):]; len(others) > 0 {
		b.WriteString("\nOthers:\n" + stepTable(others, true, now))
	}
	if o.MoreSteps {
		b.WriteString("\nThere are more steps that are not completed than were looked through: `readback workflow show WORKFLOW` finds those of a workflow.\n")
	}
	return b.String()
}

// workflowText is a workflow for a reader.
func workflowText(w workflowAnswer, now time.Time) string {
	var b strings.Builder
	if l := w.Gate; l != nil {
		fmt.Fprintf(&b, "%s  %q, %s, begun %s%s\n", report.Safe(l.WorkflowID), report.Clip(l.WorkflowName, maxNameShown), strings.ReplaceAll(string(l.Status), "_", " "), report.Ago(l.StartedAt, now), traceOf(l.TraceID))
		if l.EndedAt != nil {
			b.WriteString(report.Paragraph(fmt.Sprintf("Ended %s by %s%s.", report.Ago(*l.EndedAt, now), nameOf(l.EndedBy), whySaid(l.Reason)), ""))
		}
		b.WriteString("\n" + pageText(l, now))
	} else {
		fmt.Fprintf(&b, "%s was not begun at the gate; these writes name it.\n", report.Safe(w.Workflow))
	}
	if len(w.Writes) > 0 || w.More {
		b.WriteString("\nWrites:\n" + report.List(w.Writes, w.Error != nil, now))
	}
	if w.More {
		b.WriteString("There are more; these are the newest.\n")
	}
	return b.String()
}

// pageText is a page of the steps of a workflow.
func pageText(l *gate.StepList, now time.Time) string {
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
	return text + fmt.Sprintf("`readback workflow show %s STEP` tells all that was decided about one.\n", report.Safe(l.WorkflowID))
}

// stepTable is a row for each step, with the last decision about it.
func stepTable(all []gate.StepTrace, flows bool, now time.Time) string {
	rows := []string{"STEP\tSTANDING\tGATED\tLAST ASKED\tBY\tWHY"}
	for _, t := range all {
		name, at, by := report.Clip(t.StepID, maxNameShown), "-", "-"
		if flows {
			name = report.Clip(t.WorkflowID, maxNameShown) + "/" + name
		}
		if last, ok := t.Last(); ok {
			at, by = report.Ago(last.At, now), nameOf(last.Name)
		}
		rows = append(rows, strings.Join([]string{name, t.Status(), fmt.Sprint(t.Gates), at, by, shortened(report.Safe(t.Reason))}, "\t"))
	}
	return report.Table(rows...)
}

// stepText is a step with all its decisions.
func stepText(t gate.StepTrace) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  step %q of workflow %s (%q)\n", strings.ToUpper(t.Status()), report.Clip(t.StepID, maxNameShown), report.Clip(t.WorkflowID, maxNameShown), report.Clip(t.WorkflowName, maxNameShown))
	if t.Reason != "" {
		b.WriteString(report.Paragraph(said(t.Reason), ""))
	}
	var rows []string
	if t.IdempotencyKey != "" {
		rows = append(rows, fmt.Sprintf("  operation\t%q of tool %q", report.Clip(t.IdempotencyKey, maxNameShown), report.Clip(t.Tool, maxNameShown)))
	}
	if t.WriteID != "" {
		rows = append(rows, "  write\t"+report.Safe(t.WriteID))
	}
	if p := t.Prior; p != nil {
		rows = append(rows, fmt.Sprintf("  in its way\twrite %s of step %q of workflow %s, then %s", report.Safe(p.PriorWriteID), report.Clip(p.PriorStepID, maxNameShown), report.Clip(p.PriorWorkflowID, maxNameShown), report.Safe(p.PriorState)))
	}
	if t.CompletedAt != nil {
		rows = append(rows, fmt.Sprintf("  completed\t%s, as %s said", report.Moment(*t.CompletedAt), nameOf(t.CompletedBy)))
	}
	if len(rows) > 0 {
		b.WriteString(report.Table(rows...))
	}
	told, untold := t.Entries()
	if untold > 0 {
		fmt.Fprintf(&b, "  %d earlier answers of the gate are not kept any more.\n", untold)
	}
	for _, one := range told {
		b.WriteString(telemetryText(one))
	}
	return b.String()
}

// telemetryText is one decision.
func telemetryText(one gate.Entry) string {
	var b strings.Builder
	say := func(format string, args ...any) {
		b.WriteString(report.Paragraph(fmt.Sprintf(format, args...), "      "))
	}
	fmt.Fprintf(&b, "  %s  %s.\n", report.Moment(one.At), report.Clip(one.What, maxSaid))
	if one.Why != "" {
		say("Why: %s", said(one.Why))
	}
	switch one.By {
	case gate.TheGate:
		say("Asked by %s: %s.", nameOf(one.Name), report.Clip(one.Asked, maxSaid))
		say("Known: %s", said(one.Known))
	case gate.APerson:
		say("Decided by %s.", nameOf(one.Name))
	}
	if len(one.Rules) > 0 {
		var names []string
		for _, r := range one.Rules[:min(len(one.Rules), maxRulesShown)] {
			names = append(names, report.Clip(r, maxNameShown))
		}
		if more := len(one.Rules) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("and %d more", more))
		}
		say("Rules: %s.", strings.Join(names, ", "))
	}
	if one.Trace != "" {
		say("In trace %s.", report.TraceID(one.Trace))
	}
	return b.String()
}

// stepNext is what an operator or reviewer can do about a step.
func stepNext(t gate.StepTrace) string {
	switch p := t.Prior; {
	case t.CompletedAt != nil:
		return ""
	case t.Waits:
		return "\nA person decides: approve or reject it at the desk or at the gate.\n"
	case t.Decision == gate.Block && p != nil:
		return fmt.Sprintf("\nWhat became of the other one:\n  readback show %s\n", report.Safe(p.PriorWriteID))
	case t.Decision == gate.Block && ruledOut(t):
		return "\nIt stays so, however often it is asked for, until it is gated with \"retry_policy\": \"reevaluate\".\n"
	}
	return ""
}

// ruledOut reports whether rules block a step. Rules are not evaluated again for a step
// whose approval was denied.
func ruledOut(t gate.StepTrace) bool {
	refused := slices.ContainsFunc(t.Heard, func(h gate.Report) bool {
		return h.Decision == gate.Rejected || h.Decision == gate.Expired
	})
	return !refused && len(t.Decisions) > 0 && t.Decisions[len(t.Decisions)-1].Decision == gate.Block
}

// said formats foreign text as a sentence.
func said(text string) string {
	return sentence(strings.TrimSuffix(report.Clip(text, maxSaid), "."))
}

func nameOf(name string) string {
	if name == "" {
		return "somebody without a name"
	}
	return report.Clip(name, maxNameShown)
}

func traceOf(id string) string {
	if id == "" {
		return ""
	}
	return ", trace " + report.Clip(id, maxNameShown)
}

func whySaid(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + report.Clip(reason, maxSaid)
}
