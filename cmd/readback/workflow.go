package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/office"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/workflow"
)

func (a *app) workflowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workflow",
		Short: "What became of a workflow: what the gate and people decided about its steps",
		Args:  cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) {
			return 0, usagef("workflow what? want show")
		}),
	}
	var limit, offset int
	show := &cobra.Command{
		Use:   "show WORKFLOW [STEP]",
		Short: "The steps of a workflow with the last decision about each, or all that was decided about one",
		Long: `Show the steps that asked the gate, in the order in which they came, those that were
blocked and have no write included, each with the last decision about it; and the
newest writes that bear the name of the workflow, whichever way they came.

With STEP, show each answer of the gate and of people about that step: when, what was
asked and by whom, the answer, the rules it goes back to, what was known then, and the
trace id. Of the gate's answers the last 20 are kept.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			if len(args) == 2 {
				return a.showStep(ctx, args[0], args[1])
			}
			return a.showWorkflow(ctx, args[0], limit, offset)
		}),
	}
	show.Flags().IntVar(&limit, "limit", maxStepsTold, fmt.Sprintf("how many steps at the most, up to %d", maxStepsTold))
	show.Flags().IntVar(&offset, "offset", 0, "how many steps are passed over")
	cmd.AddCommand(show)
	return cmd
}

// errNoWorkflow and errNoStep: the tenant has none of that name.
var (
	errNoWorkflow = errors.New("no such workflow")
	errNoStep     = errors.New("no such step")
	errNoGate     = errors.New("this ledger keeps no workflows")
)

// gateToLook is the gate of a command that only looks, with what keeps it from
// telling what is sensitive.
func (a *app) gateToLook(d *desk) (*workflow.Gate, error) {
	if d.locked != nil { // what it would read is sealed
		return nil, d.locked
	}
	if d.vault != nil && d.reg == nil { // what destinations mark is in their profiles
		reg, err := d.config.Registry(a.env)
		if err != nil {
			return nil, err
		}
		d.reg = reg
	}
	store, clean, ok := d.papers(d.reg)
	if !ok {
		return nil, errNoGate
	}
	return workflow.New(store, redacting(&workflow.Options{Logger: d.log}, clean)), nil
}

// caller is whoever runs a command.
func (d *desk) caller() workflow.Caller { return workflow.Caller{Tenant: d.tenant} }

// unknownToGate reports whether an error says that the gate has nothing of a name.
func unknownToGate(err error) bool {
	var refused *workflow.Error
	return errors.As(err, &refused) && (refused.Code == workflow.NotFound || refused.Code == workflow.BadRequest)
}

func (a *app) showStep(ctx context.Context, workflowID, stepID string) (int, error) {
	d, err := a.look(ctx)
	if err != nil {
		return 0, err
	}
	defer d.close()
	g, err := a.gateToLook(d)
	if err != nil {
		return 0, err
	}
	t, err := g.Trace(ctx, d.caller(), workflowID, stepID)
	switch {
	case unknownToGate(err):
		return 0, fmt.Errorf("%w: %q of workflow %q", errNoStep, stepID, workflowID)
	case err != nil:
		return 0, err
	}
	t = office.ShownStep(t)
	return 0, a.print(t, func() string { return stepText(t) + stepNext(t) })
}

func (a *app) showWorkflow(ctx context.Context, workflowID string, limit, offset int) (int, error) {
	switch {
	case limit < 1 || limit > maxStepsTold:
		return 0, usagef("--limit is %d; want 1 to %d", limit, maxStepsTold)
	case offset < 0:
		return 0, usagef("--offset is %d; want 0 or more", offset)
	}
	d, err := a.look(ctx)
	if err != nil {
		return 0, err
	}
	defer d.close()
	var answer workflowAnswer
	answer.Workflow = workflowID
	g, err := a.gateToLook(d)
	switch {
	case errors.Is(err, errNoGate):
	case err != nil:
		return 0, err
	default:
		l, err := g.Steps(ctx, d.caller(), workflowID, limit, offset)
		if err != nil && !unknownToGate(err) {
			return 0, err
		}
		if err == nil {
			l = office.ShownSteps(l)
			answer.Gate = &l
		}
	}
	found, err := d.find(ctx, ledger.Search{Workflow: workflowID})
	if err != nil {
		return 0, err
	}
	answer.Writes, answer.More = shown(found.Records...), found.Next != ""
	if len(found.Unread) > 0 {
		answer.Error = unread(&ledger.UnreadError{Writes: found.Unread})
	}
	if answer.Gate == nil && len(answer.Writes) == 0 && answer.Error == nil && !answer.More {
		return 0, fmt.Errorf("%w: %q", errNoWorkflow, workflowID)
	}
	return a.part(answer, answer.Error, func() string { return workflowText(answer, a.time()) })
}

// workflowAnswer is what is known of a workflow.
type workflowAnswer struct {
	Workflow string `json:"workflow"`
	// Gate is there when it was begun at the gate.
	Gate *workflow.StepList `json:"gate,omitempty"`
	// Writes are the newest that bear its name; More says that there are others.
	Writes []ledger.Record `json:"writes"`
	More   bool            `json:"more_writes,omitempty"`
	// Error names writes that are left out because they cannot be read.
	Error *failure `json:"error,omitempty"`
}

// find looks for the newest writes of the tenant that fit, at most maxWrites, and
// says whether there are others.
func (d *desk) find(ctx context.Context, s ledger.Search) (found ledger.Found, err error) {
	s.Tenant = d.tenant
	for range maxFinds { // a page may hold fewer than there are
		s.Limit = maxWrites - len(found.Records)
		page, err := d.ledger.Find(ctx, s)
		if err != nil {
			return found, err
		}
		found.Records, found.Unread = append(found.Records, page.Records...), append(found.Unread, page.Unread...)
		found.Next = page.Next
		if s.After = page.Next; s.After == "" || len(found.Records) >= maxWrites {
			break
		}
	}
	return found, nil
}

// stepsOf are the steps of the gate that a business operation is about: those that
// its writes name, and those that asked for it and are not completed. more says that
// steps that are not completed were not all looked through.
func (a *app) stepsOf(ctx context.Context, d *desk, tool, key string, writes []ledger.Record) (steps []workflow.StepTrace, more bool, err error) {
	g, err := a.gateToLook(d)
	if errors.Is(err, errNoGate) {
		return []workflow.StepTrace{}, false, nil
	}
	if err != nil {
		return []workflow.StepTrace{}, false, err
	}
	steps = []workflow.StepTrace{}
	seen := map[[2]string]bool{}
	add := func(t workflow.StepTrace) {
		if at := [2]string{t.WorkflowID, t.StepID}; !seen[at] {
			seen[at] = true
			steps = append(steps, office.ShownStep(t))
		}
	}
	for _, r := range writes {
		t, err := g.Trace(ctx, d.caller(), r.Workflow, r.Step)
		if err != nil && !unknownToGate(err) {
			return steps, false, err
		}
		if err == nil {
			add(t)
		}
	}
	others, more, err := g.Undone(ctx, d.caller(), tool, key)
	for _, t := range others {
		add(t)
	}
	return steps, more, err
}

// stepsFailure is why what the gate decided is not told.
func (a *app) stepsFailure(err error) *failure {
	f := explain(fmt.Errorf("what the gate decided cannot be told: %w", err)).scrubbed(a.scrub)
	return &f
}

// passed are the writes of an operation that stop nobody any more: they came to
// nothing, or were let go.
func (d *desk) passed(ctx context.Context, tool, key string, holders []ledger.Record) (past []ledger.Record, more bool, err error) {
	held := map[ledger.ID]bool{}
	for _, r := range holders {
		held[r.ID] = true
	}
	found, err := d.find(ctx, ledger.Search{IdempotencyKey: key})
	for _, r := range found.Records {
		if r.Tool == tool && !held[r.ID] {
			past = append(past, r)
		}
	}
	return past, found.Next != "", err
}
