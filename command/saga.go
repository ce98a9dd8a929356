package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

func (a *app) sagaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "saga",
		Short: "Writes that belong together: all are done, or the finished ones are undone",
		Args:  cobra.NoArgs,
		RunE: a.does(func(context.Context, []string) (int, error) {
			return 0, usagef("a word is missing; want check, run, resume, show, list, cancel or close")
		}),
	}
	cmd.AddCommand(a.sagaCheckCommand(), a.sagaRunCommand(), a.sagaResumeCommand(), a.sagaShowCommand(), a.sagaListCommand(), a.sagaCancelCommand(), a.sagaCloseCommand())
	return cmd
}

func (a *app) sagaCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a plan, and print the order of its steps",
		Long: `FILE is a plan in YAML or JSON; - is standard input. The command compares it with the
configured destinations. It records and sends nothing.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(_ context.Context, args []string) (int, error) { return 0, a.checkSaga(args[0]) }),
	}
}

func (a *app) sagaRunCommand() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Begin the saga of a plan, and continue it",
		Long: `FILE is a plan in YAML or JSON; - is standard input. The saga is on disk before the
first send. You can run the same plan any number of times: its steps are made once,
and each run prints the state of the saga. A saga that waits for a reviewer continues
with "readback saga resume ID" only.

If the wait ends first, the saga stays in the ledger, and "readback work" or "readback
saga resume ID" continues it. With --wait 0 it is only recorded.

The saga and its writes use the W3C trace in the environment variable TRACEPARENT, and
pass it to their destinations.

Exit codes: 0 every step is done, 10 every step is undone, 11 a reviewer closed it,
20 a reviewer must decide or approve, 21 it continues.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) { return a.runSaga(ctx, args[0], wait) }),
	}
	waitFlag(cmd, &wait)
	return cmd
}

func (a *app) sagaResumeCommand() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Continue a saga, including one that waits for a reviewer",
		Long: `Continue a saga until it is done, undone or waits for a reviewer, or the wait ends.
A step is tried again if it used up its attempts, or was denied or blocked after the
pivot: solve the cause first.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) { return a.resumeSaga(ctx, args[0], wait) }),
	}
	waitFlag(cmd, &wait)
	return cmd
}

func (a *app) sagaShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a saga: each step, what is known of it, and the possible decisions",
		Args:  cobra.ExactArgs(1),
		RunE:  a.does(func(ctx context.Context, args []string) (int, error) { return a.showSaga(ctx, args[0]) }),
	}
}

func (a *app) sagaListCommand() *cobra.Command {
	var wanted []string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sagas of a tenant, newest first",
		Args:  cobra.NoArgs,
		RunE:  a.does(func(ctx context.Context, _ []string) (int, error) { return a.listSagas(ctx, wanted, limit) }),
	}
	cmd.Flags().StringSliceVar(&wanted, "state", nil, "only those in these states, of running, undoing, done, undone, review, closed")
	cmd.Flags().IntVar(&limit, "limit", 50, "the maximum number, up to 1000")
	return cmd
}

func (a *app) sagaCancelCommand() *cobra.Command {
	var by, reason string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "cancel ID --by NAME --reason TEXT",
		Short: "Cancel a saga whose pivot has not begun",
		Long: `Undo the finished steps, the last one first, and withdraw the steps that were not
sent. A step within its grace is never sent. Once the pivot has begun it is too late
(exit code 30), and the command prints what is known of the pivot.

With --wait 0 the cancellation is only recorded, and "readback work" undoes the
steps.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			return a.cancelSaga(ctx, args[0], by, reason, wait)
		}),
	}
	cmd.Flags().StringVar(&by, "by", "", "your name (required)")
	cmd.Flags().StringVar(&reason, "reason", "", "the reason (required)")
	waitFlag(cmd, &wait)
	return cmd
}

func (a *app) sagaCloseCommand() *cobra.Command {
	var by, reason string
	cmd := &cobra.Command{
		Use:   "close ID --by NAME --reason TEXT",
		Short: "Close a saga that you have settled by hand",
		Long: `Record that you have settled a saga by hand, so that it waits no longer. Nothing is
sent or undone. If one of its writes is still open, or the saga can continue by itself,
nothing changes (exit code 30), and the command prints what must come first.`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) { return a.closeSaga(ctx, args[0], by, reason) }),
	}
	cmd.Flags().StringVar(&by, "by", "", "your name (required)")
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, and what was done (required)")
	return cmd
}

// sagas is the saga runner of the opened ledger. Without an engine it can show and cancel
// sagas.
func sagas(d *server.Instance, e *engine.Engine) (*saga.Runner, error) {
	if d.Locked != nil { // what it would read or write is sealed
		return nil, d.Locked
	}
	return d.Sagas(d.Reg, e), nil
}

// checkSaga needs the destinations and no ledger.
func (a *app) checkSaga(file string) error {
	plan, reg, err := a.plan(file)
	if err != nil {
		return err
	}
	c, err := a.settings()
	if err != nil {
		return err
	}
	vault, err := a.unlock(c)
	if err != nil {
		return err
	}
	e := engine.New(ledger.NewMemory(), reg, &engine.Options{Vault: vault})
	defer e.Close()
	order, err := saga.New(ledger.NewMemory(), e, nil).Order(plan)
	if err != nil {
		return err
	}
	answer := struct {
		ID    string   `json:"id"`
		Order []string `json:"order"`
	}{plan.ID, order}
	return a.print(answer, func() string { return report.Plan(plan, order) })
}

// plan reads a plan, and creates the destinations that it is checked against.
func (a *app) plan(file string) (saga.Plan, *connectors.Registry, error) {
	c, err := a.settings()
	if err != nil {
		return saga.Plan{}, nil, err
	}
	text, err := a.readPlan(file)
	if err != nil {
		return saga.Plan{}, nil, err
	}
	plan, err := saga.Decode(text)
	if err != nil {
		return plan, nil, err
	}
	if plan.Tenant != c.Tenant {
		return plan, nil, &intent.InvalidError{Problems: []intent.Problem{{Path: "/tenant", Problem: fmt.Sprintf("is %q", plan.Tenant),
			Want: fmt.Sprintf("%q, the tenant that is meant here; --tenant %s means another one", c.Tenant, plan.Tenant)}}}
	}
	reg, err := c.Registry(a.env)
	return plan, reg, err
}

func (a *app) runSaga(ctx context.Context, file string, wait time.Duration) (int, error) {
	if wait < 0 {
		return 0, usagef("--wait is %s; want 0 or more", wait)
	}
	plan, _, err := a.plan(file)
	if err != nil {
		return 0, err
	}
	return a.withSagas(ctx, config.OpenOptions{Create: true}, func(d *server.Instance, r *saga.Runner) (saga.Saga, error) {
		d.Log.Info("saga", "saga", plan.ID, "steps", len(plan.Steps), "correlation", plan.CorrelationID)
		s, err := r.Begin(a.traced(ctx), plan)
		if err != nil {
			return s, err
		}
		return carried(ctx, r, s, wait, r.Run)
	})
}

func (a *app) resumeSaga(ctx context.Context, id string, wait time.Duration) (int, error) {
	if wait < 0 {
		return 0, usagef("--wait is %s; want 0 or more", wait)
	}
	return a.withSagas(ctx, config.OpenOptions{}, func(d *server.Instance, r *saga.Runner) (saga.Saga, error) {
		return carried(ctx, r, saga.Saga{Tenant: d.Tenant, ID: id}, wait, r.Resume)
	})
}

func (a *app) cancelSaga(ctx context.Context, id, by, reason string, wait time.Duration) (int, error) {
	if err := signed(by, reason); err != nil {
		return 0, err
	}
	if wait < 0 {
		return 0, usagef("--wait is %s; want 0 or more", wait)
	}
	return a.withSagas(ctx, config.OpenOptions{}, func(d *server.Instance, r *saga.Runner) (saga.Saga, error) {
		s, err := r.Cancel(a.traced(ctx), d.Tenant, id, by, reason)
		if err != nil {
			return s, err
		}
		return carried(ctx, r, s, wait, r.Run)
	})
}

func (a *app) closeSaga(ctx context.Context, id, by, reason string) (int, error) {
	if err := signed(by, reason); err != nil {
		return 0, err
	}
	return a.withSagas(ctx, config.OpenOptions{}, func(d *server.Instance, r *saga.Runner) (saga.Saga, error) {
		return r.Close(a.traced(ctx), d.Tenant, id, by, reason)
	})
}

// signed refuses a decision without a name or a reason.
func signed(by, reason string) error {
	switch {
	case by == "":
		return usagef("--by is missing; want the name of who decides")
	case reason == "":
		return usagef("--reason is missing; want why")
	}
	return nil
}

// carried is a saga after Run or Resume, within the given time.
func carried(ctx context.Context, r *saga.Runner, s saga.Saga, wait time.Duration, on func(context.Context, string, string) (saga.Saga, error)) (saga.Saga, error) {
	if wait == 0 {
		return r.Get(ctx, s.Tenant, s.ID)
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return on(waiting, s.Tenant, s.ID)
}

// withSagas opens what a command needs that runs sagas, and prints the saga's state when
// all work is handed back to the ledger.
func (a *app) withSagas(ctx context.Context, o config.OpenOptions, work func(*server.Instance, *saga.Runner) (saga.Saga, error)) (int, error) {
	d, e, err := a.bench(ctx, o)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	defer e.Close()
	r, err := sagas(d, e)
	if err != nil {
		return 0, err
	}
	s, err := work(d, r)
	if err != nil {
		return 0, err
	}
	e.Close()
	if s, err = r.Get(context.WithoutCancel(ctx), s.Tenant, s.ID); err != nil {
		return 0, err
	}
	code := sagaCode(s)
	d.Log.Info("saga", "saga", s.ID, "correlation", s.CorrelationID, "state", s.State, "exit", code)
	return code, a.printSaga(s, code)
}

// printSaga prints a saga.
func (a *app) printSaga(s saga.Saga, code int) error {
	answer := struct {
		saga.Saga
		Exit int `json:"exit"`
	}{s, code}
	return a.print(answer, func() string { return report.Saga(s) })
}

// sagaCode is the exit code of a saga.
func sagaCode(s saga.Saga) int {
	switch s.State {
	case saga.Done:
		return exitVerified
	case saga.Undone:
		return exitNotApplied
	case saga.Closed:
		return exitUnproven
	case saga.Review:
		return exitReview
	}
	for _, step := range s.Steps {
		if step.Status == ledger.StatusHeld {
			return exitReview
		}
	}
	return exitInProgress
}

// sagasWait lists what an operator should see to in the sagas of a tenant.
func sagasWait(ctx context.Context, d *server.Instance) ([]report.Matter, error) {
	r, err := sagas(d, nil)
	if err != nil {
		return nil, nil //nolint:nilerr // without its keys a ledger shows no sagas
	}
	n, err := r.Count(ctx, d.Tenant, saga.Review)
	if err != nil || n == 0 {
		return nil, err
	}
	what := fmt.Sprintf("Tenant %s: %d sagas wait for a reviewer.", report.Safe(d.Tenant), n)
	if n == 1 {
		what = fmt.Sprintf("Tenant %s: 1 saga waits for a reviewer.", report.Safe(d.Tenant))
	}
	return []report.Matter{{What: what, Do: "readback saga list --state review --tenant " + report.Safe(d.Tenant)}}, nil
}

func (a *app) showSaga(ctx context.Context, id string) (int, error) {
	d, err := a.openToRead(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	r, err := sagas(d, nil)
	if err != nil {
		return 0, err
	}
	s, err := r.Get(ctx, d.Tenant, id)
	if err != nil {
		return 0, err
	}
	return 0, a.print(s, func() string { return report.Saga(s) })
}

func (a *app) listSagas(ctx context.Context, wanted []string, limit int) (int, error) {
	var states []saga.State
	for _, w := range wanted {
		s := saga.State(strings.TrimSpace(w))
		if !slices.Contains(service.SagaStates, s) {
			return 0, usagef("--state is %q; want some of %q", w, service.SagaStates)
		}
		states = append(states, s)
	}
	if limit < 1 || limit > 1000 {
		return 0, usagef("--limit is %d; want 1 to 1000", limit)
	}
	d, err := a.openToRead(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	r, err := sagas(d, nil)
	if err != nil {
		return 0, err
	}
	all, err := r.List(ctx, d.Tenant, limit, states...)
	if err != nil {
		return 0, err
	}
	return 0, a.print(map[string][]saga.Saga{"sagas": all}, func() string { return report.Sagas(all) })
}
