package reviewui

import (
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
)

// maxText is how many characters of a sentence are shown.
const maxText = 600

// pastStep is a step that is not in the inbox: it was allowed, blocked or decided, or
// more wait than are listed.
func pastStep(t gate.StepTrace) stepPage {
	b := stepPage{Title: stepTitle(t), Badge: stepStatus(t), Crowded: t.Waits}
	b.Facts.add("Why", t.Reason)
	b.Facts.search("Workflow", t.WorkflowName+" ("+t.WorkflowID+")", "workflow", t.WorkflowID)
	b.Facts.add("Step", t.StepID)
	b.Facts.add("Type", t.StepType)
	b.Facts.search("Operation", t.IdempotencyKey+" of tool "+t.Tool, "operation", t.IdempotencyKey)
	b.Facts.write("Its write", ledger.ID(t.WriteID))
	if p := t.Prior; p != nil {
		b.Facts.link("In its way", "write "+p.PriorWriteID+" of workflow "+p.PriorWorkflowID+", then "+p.PriorState, writePath(ledger.ID(p.PriorWriteID)))
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

// rulings are the last decisions about a step, in order, and how many are left out before
// them.
func rulings(t gate.StepTrace) (all []report.Ruling, left int) {
	all, left = report.Rulings(t)
	from := max(0, len(all)-maxEvents)
	return all[from:], from + left
}
