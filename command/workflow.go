package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxStepsShown is how many steps of a workflow are shown at once: the gate returns
	// no more.
	maxStepsShown = 100
	// maxWrites is how many writes of a workflow, or of an operation, are listed beside
	// its steps, and maxFinds how many pages are read to find them.
	maxWrites = 50
	maxFinds  = 20
)

func (a *app) workflowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workflow",
		Short: "Show the decisions about a workflow's steps: the gate's and the reviewers'",
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
newest writes that name the workflow, through whichever API they were submitted.

With STEP, show each answer of the gate and of people about that step: when, what was
asked and by whom, the answer, the rules that gave it, what was known then, and the
trace id. Of the gate's answers the last 20 are kept.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			if len(args) == 2 {
				return a.showStep(ctx, args[0], args[1])
			}
			return a.showWorkflow(ctx, args[0], limit, offset)
		}),
	}
	show.Flags().IntVar(&limit, "limit", maxStepsShown, fmt.Sprintf("how many steps at the most, up to %d", maxStepsShown))
	show.Flags().IntVar(&offset, "offset", 0, "how many steps to skip")
	cmd.AddCommand(show)
	return cmd
}

// errNoWorkflow and errNoStep: the tenant has none of that name.
var (
	errNoWorkflow = errors.New("no such workflow")
	errNoStep     = errors.New("no such step")
)

// gateToRead is the gate of a command that only reads, with its redactor.
func (a *app) gateToRead(d *server.Instance) (*gate.Gate, error) {
	if d.Locked != nil { // what it would read is sealed
		return nil, d.Locked
	}
	if d.Vault != nil && d.Reg == nil { // the profiles have the fields that destinations mark
		reg, err := d.Config.Registry(a.env)
		if err != nil {
			return nil, err
		}
		d.Reg = reg
	}
	return d.Gate(d.Reg, &gate.Options{Logger: d.Log}), nil
}

// caller is the user who runs a command.
func caller(d *server.Instance) gate.Caller { return gate.Caller{Tenant: d.Tenant} }

// unknownToGate reports whether the gate does not know a name.
func unknownToGate(err error) bool {
	var refused *gate.Error
	return errors.As(err, &refused) && (refused.Code == gate.NotFound || refused.Code == gate.BadRequest)
}

func (a *app) showStep(ctx context.Context, workflowID, stepID string) (int, error) {
	d, err := a.openToRead(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	g, err := a.gateToRead(d)
	if err != nil {
		return 0, err
	}
	t, err := g.Trace(ctx, caller(d), workflowID, stepID)
	switch {
	case unknownToGate(err):
		return 0, fmt.Errorf("%w: %q of workflow %q", errNoStep, stepID, workflowID)
	case err != nil:
		return 0, err
	}
	return 0, a.print(t, func() string { return report.Step(t) })
}

func (a *app) showWorkflow(ctx context.Context, workflowID string, limit, offset int) (int, error) {
	switch {
	case limit < 1 || limit > maxStepsShown:
		return 0, usagef("--limit is %d; want 1 to %d", limit, maxStepsShown)
	case offset < 0:
		return 0, usagef("--offset is %d; want 0 or more", offset)
	}
	d, err := a.openToRead(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	var answer struct {
		report.Workflow
		// Error names writes that are left out because they cannot be read.
		Error *failure `json:"error,omitempty"`
	}
	answer.Workflow.Workflow = workflowID
	g, err := a.gateToRead(d)
	if err != nil {
		return 0, err
	}
	l, err := g.Steps(ctx, caller(d), workflowID, limit, offset)
	if err != nil && !unknownToGate(err) {
		return 0, err
	}
	if err == nil {
		answer.Gate = &l
	}
	found, err := find(ctx, d, ledger.Search{Workflow: workflowID})
	if err != nil {
		return 0, err
	}
	answer.Writes, answer.More = service.ShownAll(found.Records), found.Next != ""
	if len(found.Unread) > 0 {
		answer.Error = unread(&ledger.UnreadError{Writes: found.Unread})
	}
	if answer.Gate == nil && len(answer.Writes) == 0 && answer.Error == nil && !answer.More {
		return 0, fmt.Errorf("%w: %q", errNoWorkflow, workflowID)
	}
	return a.part(answer, answer.Error, func() string { return answer.Text(answer.Error != nil, a.time()) })
}

// find searches the newest matching writes of the tenant, at most the limit, by default
// maxWrites, and reports whether there are others.
func find(ctx context.Context, d *server.Instance, s ledger.Search) (found ledger.SearchResult, err error) {
	s.Tenant = d.Tenant
	most := cmp.Or(s.Limit, maxWrites)
	for range maxFinds { // a page may hold fewer than there are
		s.Limit = min(most-len(found.Records), maxWrites)
		page, err := d.Ledger.Find(ctx, s)
		if err != nil {
			return found, err
		}
		found.Records, found.Unread = append(found.Records, page.Records...), append(found.Unread, page.Unread...)
		found.Next = page.Next
		if s.After = page.Next; s.After == "" || len(found.Records) >= most {
			break
		}
	}
	return found, nil
}

// stepsOf are the steps of a business operation at the gate: those that its writes name,
// and those that asked for it and are not completed. more reports that not all
// uncompleted steps were searched.
func (a *app) stepsOf(ctx context.Context, d *server.Instance, tool, key string, writes []ledger.Record) (steps []gate.StepTrace, more bool, err error) {
	g, err := a.gateToRead(d)
	if err != nil {
		return []gate.StepTrace{}, false, err
	}
	steps = []gate.StepTrace{}
	seen := map[[2]string]bool{}
	add := func(t gate.StepTrace) {
		if at := [2]string{t.WorkflowID, t.StepID}; !seen[at] {
			seen[at] = true
			steps = append(steps, t)
		}
	}
	for _, r := range writes {
		t, err := g.Trace(ctx, caller(d), r.Workflow, r.Step)
		if err != nil && !unknownToGate(err) {
			return steps, false, err
		}
		if err == nil {
			add(t)
		}
	}
	others, more, err := g.Undone(ctx, caller(d), tool, key)
	for _, t := range others {
		add(t)
	}
	return steps, more, err
}

// stepsFailure is why the gate's decisions are not shown.
func (a *app) stepsFailure(err error) *failure {
	f := explain(fmt.Errorf("what the gate decided cannot be read: %w", err)).scrubbed(a.scrub)
	return &f
}

// passed are the writes of an operation that block no other one any more: they failed, or
// were released.
func passed(ctx context.Context, d *server.Instance, tool, key string, holders []ledger.Record) (past []ledger.Record, more bool, err error) {
	held := map[ledger.ID]bool{}
	for _, r := range holders {
		held[r.ID] = true
	}
	found, err := find(ctx, d, ledger.Search{IdempotencyKey: key})
	for _, r := range found.Records {
		if r.Tool == tool && !held[r.ID] {
			past = append(past, r)
		}
	}
	return past, found.Next != "", err
}
