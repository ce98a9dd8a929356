package reviewui

import (
	"time"

	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
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
	Asked string
	Known string
}

// pastStep is a step that is not in the inbox: it was let go, blocked or decided,
// or more wait than are listed.
func pastStep(t workflow.StepTrace) stepPage {
	b := stepPage{Title: stepTitle(t), Badge: stepStanding(t), Crowded: t.Waits}
	add := func(name, text, link string) {
		if text != "" {
			b.Facts = append(b.Facts, linked{Name: name, Text: report.Clip(text, maxText), Link: link})
		}
	}
	add("Why", t.Reason, "")
	add("Workflow", t.WorkflowName+" ("+t.WorkflowID+")", searchPath("workflow", t.WorkflowID))
	add("Step", t.StepID, "")
	add("Type", t.StepType, "")
	if t.IdempotencyKey != "" {
		add("Operation", t.IdempotencyKey+" of tool "+t.Tool, searchPath("operation", t.IdempotencyKey))
	}
	if t.WriteID != "" {
		add("Its write", t.WriteID, writePath(ledger.ID(t.WriteID)))
	}
	if p := t.Prior; p != nil {
		add("In its way", "write "+p.PriorWriteID+" of workflow "+p.PriorWorkflowID+", then "+p.PriorState, writePath(ledger.ID(p.PriorWriteID)))
	}
	return b
}

func stepTitle(t workflow.StepTrace) string {
	name := t.StepName
	if name == "" {
		name = t.StepID
	}
	return report.Clip("step "+name+" of "+t.WorkflowName, 2*maxName)
}

// stepMarks are the badges of how a step stands.
var stepMarks = map[string]badge{"completed": {"good", "✓", "completed"}, "held": {"warn", "‖", "held"}, "allowed": {"good", "✓", "allowed"}, "blocked": {"bad", "✕", "blocked"}}

func stepStanding(t workflow.StepTrace) badge {
	if b, ok := stepMarks[t.Standing()]; ok {
		return b
	}
	return badge{"calm", "", t.Standing()}
}

// rulings are the answers of the gate and of people, in order, and how many are
// left out before them.
func rulings(t workflow.StepTrace) (all []ruled, untold int) {
	told, untold := t.Told()
	from := max(0, len(told)-maxEvents)
	for _, one := range told[from:] {
		r := ruled{At: one.At, Class: "wait", What: report.Clip(one.What, maxText), Why: sentence(one.Why), Trace: report.TraceID(one.Trace),
			Asked: report.Clip(one.Asked, maxText), Known: report.Clip(one.Known, maxText)}
		switch {
		case one.By == workflow.APerson:
			r.Class, r.By = "person", "decided by "+nameOf(one.Name)
		case one.By == workflow.TheGate:
			r.By = "asked by " + nameOf(one.Name)
		}
		if one.Allowed {
			r.Class = "end"
		}
		for _, rule := range one.Rules[:min(len(one.Rules), maxRules)] {
			r.Rules = append(r.Rules, report.Clip(rule, maxName))
		}
		r.More = len(one.Rules) - len(r.Rules)
		all = append(all, r)
	}
	return all, from + untold
}

// nameOf is a name as it is shown.
func nameOf(name string) string {
	if name == "" {
		return "somebody without a name"
	}
	return report.Clip(name, maxName)
}
