package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

// maxWaiting bounds the list of what waits for a reviewer: no one reads more, and an
// omission is reported.
const maxWaiting = 1000

func (a *app) operationCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "operation",
		Short: "Business operations across workflows: show or release one",
		Args:  cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) {
			return 0, usagef("operation what? want show or release")
		}),
	}
	var tool, key string
	show := &cobra.Command{
		Use:   "show --tool TOOL --key KEY",
		Short: "Show who began a business operation, whether that blocks others, and the gate's decisions",
		Long: `Show the writes and steps that began the business operation of an idempotency key of
this tenant and tool: workflow, step, state, outcome, and whether they block another
workflow now; its failed and released writes; and for each step that called the gate,
blocked ones included, the decisions: time, request, caller, answer, rules, known facts
and trace ID.

An open step is found only among the newest 1000 open steps of the tenant. "readback
workflow show" finds each step by its workflow.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.showOperation(ctx, tool, key) }),
	}
	show.Flags().StringVar(&tool, "tool", "", "the tool (required)")
	show.Flags().StringVar(&key, "key", "", "the idempotency key (required)")
	var id, by, reason string
	release := &cobra.Command{
		Use:   "release --id WRITE --by NAME --reason TEXT",
		Short: "Release a business operation, so that it can be begun again",
		Long: `Release the business operation of a write: from then on its idempotency key blocks no
other workflow, whatever the write did or may still do. You take responsibility for a
second effect. The ledger records your name and reason; nothing else changes.

Agents must not be able to run this command.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) {
			return a.releaseOperation(ctx, id, by, reason)
		}),
	}
	release.Flags().StringVar(&id, "id", "", "the write that began it (required)")
	release.Flags().StringVar(&by, "by", "", "your name (required)")
	release.Flags().StringVar(&reason, "reason", "", "the reason (required)")
	cmd.AddCommand(show, release)
	return cmd
}

func (a *app) showOperation(ctx context.Context, tool, key string) (int, error) {
	switch {
	case tool == "":
		return 0, usagef("--tool is missing; want the tool of the operation: one key means something else to another tool")
	case key == "":
		return 0, usagef("--key is missing; want the idempotency key of the operation")
	}
	d, err := a.openToRead(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	recs, err := d.Ledger.Operation(ctx, d.Tenant, tool, key)
	left, err := partly(err)
	if err != nil {
		return 0, err
	}
	past, more, err := passed(ctx, d, tool, key, recs)
	if err != nil {
		return 0, err
	}
	answer := struct {
		report.Operation
		// Error names what is left out because it cannot be read.
		Error *failure `json:"error,omitempty"`
	}{report.Operation{Tool: tool, Key: key, Holders: []report.Holder{}, Past: service.ShownAll(past), MorePast: more}, left}
	now := a.time()
	for _, r := range service.ShownAll(recs) {
		now = r.Now
		answer.Holders = append(answer.Holders, holder(d, r))
	}
	answer.Steps, answer.MoreSteps, err = a.stepsOf(ctx, d, tool, key, append(recs, past...))
	if err != nil && answer.Error == nil {
		answer.Error = a.stepsFailure(err)
	}
	return a.part(answer, answer.Error, func() string { return answer.Text(now) })
}

// holder reports whether a write blocks another one of its operation.
func holder(d *server.Instance, r ledger.Record) report.Holder {
	window := server.IdempotencyWindow
	if r.Delegated && d.Config.Gate.Window > 0 {
		window = d.Config.Gate.Window
	}
	other := r.Identity() // the same operation, begun by another workflow
	other.StructuralKey, other.Workflow = "", ""
	h := report.Holder{Record: r, Blocks: ledger.Blocks(r, ledger.Reservation{Record: other, Window: window}, r.Now)}
	if r.State == ledger.Settled {
		h.Outcome = engine.OutcomeOf(r).Text
		if h.Blocks {
			h.Until = r.Created.Add(window)
		}
	}
	return h
}

func (a *app) releaseOperation(ctx context.Context, text, by, reason string) (int, error) {
	switch {
	case text == "":
		return 0, usagef("--id is missing; want the write that has begun the operation, as `readback operation show` names it")
	case strings.TrimSpace(by) == "":
		return 0, usagef("--by is missing; want the name of who decides")
	case strings.TrimSpace(reason) == "":
		return 0, usagef("--reason is missing; want why")
	}
	d, e, err := a.bench(ctx, config.OpenOptions{})
	if err != nil {
		return 0, err
	}
	defer d.Close()
	defer e.Close()
	id, err := wholeID(ctx, d, text)
	if err != nil {
		return 0, err
	}
	if err := e.Yield(ctx, d.Tenant, id, by, reason); err != nil {
		return 0, err
	}
	rec, err := d.Ledger.Get(context.WithoutCancel(ctx), d.Tenant, id)
	if err != nil {
		return 0, err
	}
	return 0, a.print(holder(d, service.Shown(rec)), func() string {
		return fmt.Sprintf("Operation %q of tool %q is released: write %s, %s, blocks no other write.\n",
			report.Safe(rec.IdempotencyKey), report.Safe(rec.Tool), rec.ID, rec.Phase())
	})
}
