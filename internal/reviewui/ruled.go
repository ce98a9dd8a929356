package reviewui

import (
	"slices"
	"time"

	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/workflow"
)

// ruled is one decision about a step.
type ruled struct {
	At    time.Time
	Class string
	What  string
	Why   string
	By    string
	Rules []string
	More  int // rules that are not named
	Trace string
}

// pastStep is a step that is not in the inbox: it was let go, blocked or decided,
// or more wait than are listed.
func pastStep(t workflow.StepTrace) stepPage {
	name := t.StepName
	if name == "" {
		name = t.StepID
	}
	b := stepPage{Title: report.Clip("step "+name+" of "+t.WorkflowName, 2*maxName), Badge: stepStanding(t), Crowded: t.Waits}
	add := func(name, text, link string) {
		if text != "" {
			b.Facts = append(b.Facts, linked{Name: name, Text: report.Clip(text, maxText), Link: link})
		}
	}
	add("Why", t.Reason, "")
	add("Workflow", t.WorkflowName+" ("+t.WorkflowID+")", searchPath("workflow", t.WorkflowID))
	add("Step", t.StepID, "")
	add("Type", t.StepType, "")
	return b
}

func stepStanding(t workflow.StepTrace) badge {
	switch {
	case t.Waits:
		return badge{"warn", "‖", "held"}
	case t.Decision == workflow.Allow:
		return badge{"good", "✓", "allowed"}
	case t.Decision == workflow.Block:
		return badge{"bad", "✕", "blocked"}
	}
	return badge{"calm", "", "not waiting"} // held, and its workflow has ended
}

// rulings are the answers of the gate and of people, in order, and how many are
// left out before them.
func rulings(t workflow.StepTrace) (all []ruled, untold int) {
	for _, one := range t.Decisions {
		r := ruled{At: one.At, Class: "wait", What: "The gate said " + report.Clip(string(one.Decision), maxName), Why: sentence(one.Reason),
			By: "asked by " + nameOf(one.By), Trace: report.TraceID(one.Trace)}
		if one.Decision == workflow.Allow {
			r.Class = "end"
		}
		for _, rule := range one.Rules[:min(len(one.Rules), maxRules)] {
			r.Rules = append(r.Rules, report.Clip(rule, maxName))
		}
		r.More = len(one.Rules) - len(r.Rules)
		all = append(all, r)
	}
	for _, one := range t.Heard {
		r := ruled{At: one.At, Class: "person", What: "It was " + report.Clip(string(one.Decision), maxName), Why: sentence(one.Reason), Trace: report.TraceID(one.Trace)}
		switch {
		case one.Decision == workflow.Pending:
			r.Class, r.What = "wait", "It is overdue"
		case one.Decision == workflow.Expired:
			r.Class, r.What = "wait", "Its time was over"
		default:
			r.By = "decided by " + nameOf(one.By)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b ruled) int { return a.At.Compare(b.At) })
	from := max(0, len(all)-maxEvents)
	return all[from:], from + max(0, t.Gates-len(t.Decisions))
}

// nameOf is a name as it is shown.
func nameOf(name string) string {
	if name == "" {
		return "somebody without a name"
	}
	return report.Clip(name, maxName)
}
