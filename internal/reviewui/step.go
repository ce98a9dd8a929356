package reviewui

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxUnfolded is up to how many bytes a step's content is unfolded at first.
	maxUnfolded = 2 << 10
	// maxText is how many characters of a sentence are shown.
	maxText = 600
)

// errNoStep: no such step waits. errUnknownStep: the step does not exist.
var (
	errNoStep      = errors.New("no such step waits")
	errUnknownStep = errors.New("no such step")
)

// stepPage is a step of the gate.
type stepPage struct {
	Title     string
	Badge     badge
	Waits     bool // a reviewer must decide, and can here
	Crowded   bool // a reviewer must decide, and more wait than are listed
	Facts     facts
	Policies  facts
	Documents []*rest
	Trace     []report.Ruling
	Withheld  int // left out before those of Trace
	Action    string
	Approval  string
	Choice    string
	Reason    string
	Problem   map[string]string
	Error     string
	Rights    rights
}

// step shows a step: what it waits for, if it does, and the decisions about it.
func (d *app) step(v *visit) error {
	s, err := d.pending(v)
	if err != nil && !errors.Is(err, errNoStep) {
		return err
	}
	b := stepPage{}
	if err == nil {
		b = stepBody(s)
	}
	return d.showStep(v, http.StatusOK, b)
}

// pending is the step of the path, if it waits.
func (d *app) pending(v *visit) (gate.PendingApproval, error) {
	steps, err := d.service.PendingSteps(v.r.Context(), v.who)
	if err != nil {
		return gate.PendingApproval{}, err
	}
	for _, s := range steps {
		if s.WorkflowID == v.r.PathValue("workflow") && s.StepID == v.r.PathValue("step") {
			return s, nil
		}
	}
	return gate.PendingApproval{}, errNoStep
}

func stepBody(s gate.PendingApproval) stepPage {
	now, paint := time.Now(), newPainter()
	b := stepPage{Title: stepRow(s.WorkflowID, s.WorkflowName, s.StepID, s.StepName).Title, Badge: badgeOf(stepBadges, "held"), Waits: true,
		Action: stepPath(s.WorkflowID, s.StepID) + "/decision", Approval: s.ApprovalID, Problem: map[string]string{}}
	b.about("Why it is held", s.DecisionReason, s.WorkflowID, s.WorkflowName, s.StepID, s.StepType)
	b.Facts.at("Held since", s.CreatedAt, now)
	if s.ExpiresAt != nil && !s.Overdue {
		b.Facts.at("Approve by", *s.ExpiresAt, now)
	}
	b.Facts.add("Approvals", fmt.Sprintf("%d of %d", len(s.ApprovedBy), max(s.Need, 1)))
	for _, name := range s.ApprovedBy {
		b.Facts.add("Approved by", name)
	}
	for _, p := range s.PoliciesMatched {
		text := strings.Join([]string{p.PolicyName, p.Reason, p.PolicyDescription}, ": ")
		b.Policies = append(b.Policies, fact{Name: report.Clip(p.PolicyID, maxName), Text: report.Clip(strings.Trim(text, ": "), maxText)})
	}
	var tool json.RawMessage
	if s.ToolContext != nil {
		tool, _ = json.Marshal(s.ToolContext) // it came as JSON
	}
	for _, doc := range []*rest{paint.document("what it is called with", s.StepInput), paint.document("the tool", tool), paint.document("the declared write", s.Intent)} {
		if doc != nil {
			doc.Open = len(doc.Text) <= maxUnfolded // a reviewer must read it before the decision
			b.Documents = append(b.Documents, doc)
		}
	}
	return b
}

// pastStep is a step that is not in the inbox: it was allowed, blocked or decided, or
// more wait than are listed.
func pastStep(t gate.StepTrace) stepPage {
	b := stepPage{Title: foundStep(t).Title, Badge: badgeOf(stepBadges, t.Status()), Crowded: t.Waits}
	b.about("Why", t.Reason, t.WorkflowID, t.WorkflowName, t.StepID, t.StepType)
	b.Facts.search("Operation", t.IdempotencyKey+" of tool "+t.Tool, "operation", t.IdempotencyKey)
	b.Facts.write("Its write", ledger.ID(t.WriteID))
	if p := t.Prior; p != nil {
		b.Facts.link("In its way", "write "+p.PriorWriteID+" of workflow "+p.PriorWorkflowID+", then "+p.PriorState, writePath(ledger.ID(p.PriorWriteID)))
	}
	return b
}

// about begins the facts about a step.
func (b *stepPage) about(why, reason, workflow, workflowName, step, kind string) {
	b.Facts.add(why, reason)
	b.Facts.search("Workflow", workflowName+" ("+workflow+")", "workflow", workflow)
	b.Facts.add("Step", step)
	b.Facts.add("Type", kind)
}

// showStep shows a step with all decisions about it.
func (d *app) showStep(v *visit, status int, b stepPage) error {
	t, err := d.service.StepTrace(v.r.Context(), v.who, v.r.PathValue("workflow"), v.r.PathValue("step"))
	if refused := (*gate.Error)(nil); errors.As(err, &refused) && refused.Code == gate.NotFound {
		return errUnknownStep
	}
	if err != nil {
		return err
	}
	if !b.Waits {
		b = pastStep(t)
	}
	all, left := report.Rulings(t)
	from := max(0, len(all)-maxEvents)
	b.Trace, b.Withheld = all[from:], left+from
	b.Rights = v.rights()
	p := d.page(v, b.Title, "inbox", b)
	return d.show(v, status, "step", p)
}

// decideStep approves or rejects a step. If a form is sent twice, the second finds that
// the step does not wait any more.
func (d *app) decideStep(v *visit) error {
	s, err := d.pending(v)
	if err != nil {
		return err
	}
	b := stepBody(s)
	b.Choice, b.Reason = v.form.Get("choice"), v.form.Get("reason")
	reason, problem := reasonOf(v.form)
	if problem != "" {
		b.Problem["reason"] = problem
	}
	if b.Choice != "approve" && b.Choice != "reject" {
		b.Problem["choice"] = "Choose what is to be done."
	}
	seen := v.form.Get("approval")
	if seen == "" || seen != s.ApprovalID {
		b.Error = "The step asks for something else than you saw. Nothing was done: read it as it is now, and decide again."
	}
	if len(b.Problem) > 0 || b.Error != "" {
		return d.showStep(v, http.StatusUnprocessableEntity, b)
	}
	if _, err = d.service.DecideStep(v.r.Context(), v.who, s.WorkflowID, s.StepID, b.Choice == "approve", gate.Comment{Comment: reason, ApprovalID: seen}); err == nil {
		return v.saying("/inbox", "step")
	}
	f, expected := failureOf(err)
	if !expected {
		return err
	}
	b.Error = f.Text
	return d.showStep(v, f.Status, b)
}
