package reviewui

import (
	"time"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxRules is how many rules of one decision of the gate are named.
	maxRules = 20
	// maxText is how many characters of a sentence are shown.
	maxText = 600
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

// pastStep is a step that is not in the inbox: it was allowed, blocked or decided, or
// more wait than are listed.
func pastStep(t gate.StepTrace) stepPage {
	b := stepPage{Title: stepTitle(t), Badge: stepStatus(t), Crowded: t.Waits}
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

func stepTitle(t gate.StepTrace) string {
	name := t.StepName
	if name == "" {
		name = t.StepID
	}
	return report.Clip("step "+name+" of "+t.WorkflowName, 2*maxName)
}

// stepMarks are the badges of a step's status.
var stepMarks = map[string]badge{"completed": {"good", "✓", "completed"}, "held": {"warn", "‖", "held"}, "allowed": {"good", "✓", "allowed"}, "blocked": {"bad", "✕", "blocked"}}

func stepStatus(t gate.StepTrace) badge {
	if b, ok := stepMarks[t.Status()]; ok {
		return b
	}
	return badge{"calm", "", t.Status()}
}

// rulings are the decisions of the gate and of reviewers, in order, and how many are left
// out before them.
func rulings(t gate.StepTrace) (all []ruled, untold int) {
	told, untold := t.Entries()
	from := max(0, len(told)-maxEvents)
	for _, one := range told[from:] {
		r := ruled{At: one.At, Class: "wait", What: report.Clip(one.What, maxText), Why: sentence(one.Why), Trace: report.TraceID(one.Trace),
			Asked: report.Clip(one.Asked, maxText), Known: report.Clip(one.Known, maxText)}
		switch {
		case one.By == gate.APerson:
			r.Class, r.By = "person", "decided by "+nameOf(one.Name)
		case one.By == gate.TheGate:
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

// nameOf is a name in its displayed form.
func nameOf(name string) string {
	if name == "" {
		return "somebody without a name"
	}
	return report.Clip(name, maxName)
}
