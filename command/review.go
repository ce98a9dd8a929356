package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

func (a *app) reviewCommand() *cobra.Command {
	var d engine.Decision
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "review [ID accept|retry|compensate|abandon|approve|deny --by NAME --reason TEXT]",
		Short: "List the writes that wait for a reviewer, or decide about one",
		Long: `Without arguments: list the writes that wait for a reviewer, the oldest first. With
an ID and a word: decide, with your name and your reason.

For writes in review:
  accept      take responsibility for the write as it is
  retry       send again if that is provably harmless; with --force also if only
              you know that the effect is missing (readback reads once more first)
  compensate  undo it with another write
  abandon     give it up; whether it happened stays unknown
For held writes, within the time that is shown:
  approve     approve and send; if several reviewers are required, each approves
  deny        do not send; nothing was sent
The caller of a write cannot approve it, and no reviewer can approve it twice. The
event of the decision records the trace in the environment variable TRACEPARENT.

Agents must not be able to run this command.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 2 {
				return usagef("review takes no arguments, or an id and a word (accept, retry, compensate, abandon, approve, deny), not %d", len(args))
			}
			return nil
		},
		RunE: a.does(func(ctx context.Context, args []string) (int, error) {
			if len(args) == 0 {
				return a.waiting(ctx)
			}
			d.Word = engine.Word(args[1])
			return a.review(ctx, args[0], d, wait)
		}),
	}
	cmd.Flags().StringVar(&d.By, "by", "", "your name (required)")
	cmd.Flags().StringVar(&d.Reason, "reason", "", "the reason (required)")
	cmd.Flags().StringVar(&d.Digest, "digest", "", "the digest that you saw: the decision is refused if the write has changed")
	cmd.Flags().BoolVar(&d.Force, "force", false, "with retry: vouch that the effect is missing")
	waitFlag(cmd, &wait)
	return cmd
}

func (a *app) review(ctx context.Context, text string, decision engine.Decision, wait time.Duration) (int, error) {
	switch {
	case !slices.Contains(service.Decisions, decision.Word):
		return 0, usagef("the word is %q; want one of %v", decision.Word, service.Decisions)
	case strings.TrimSpace(decision.By) == "":
		return 0, usagef("--by is missing; want the name of who decides")
	case strings.TrimSpace(decision.Reason) == "":
		return 0, usagef("--reason is missing; want why")
	case decision.Force && decision.Word != engine.WordRetry:
		return 0, usagef("--force belongs to retry, not to %s", decision.Word)
	case wait < 0:
		return 0, usagef("--wait is %s; want 0 or more", wait)
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
	waiting, cancel := context.WithTimeout(a.traced(ctx), wait)
	defer cancel()
	out, err := e.Resolve(waiting, d.Tenant, id, decision)
	if err != nil {
		return 0, err
	}
	return a.outcome(ctx, d, e, out)
}

// waiting lists what waits for a reviewer.
func (a *app) waiting(ctx context.Context) (int, error) {
	d, err := a.openToRead(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	recs, listing := d.Ledger.List(ctx, ledger.Filter{Tenant: d.Tenant, States: []ledger.State{ledger.Review, ledger.Held}, Limit: maxWaiting})
	recs = service.ShownAll(recs)
	left, err := partly(listing)
	if err != nil {
		return 0, err
	}
	slices.Reverse(recs) // the oldest has waited longest
	sagas, err := sagasWait(ctx, d)
	if err != nil {
		return 0, err
	}
	list := struct {
		Waiting []ledger.Record `json:"waiting"`
		More    bool            `json:"more"`
		// Sagas reports that sagas wait as well, and how to list them.
		Sagas []report.Matter `json:"sagas,omitempty"`
		// Error names writes that are left out because they cannot be read.
		Error *failure `json:"error,omitempty"`
	}{recs, len(recs) == maxWaiting || goesOn(listing) != "", sagas, left}
	now := a.time()
	if len(recs) > 0 {
		now = recs[0].Now
	}
	return a.part(list, left, func() string { return report.Waiting(recs, list.More, left != nil, now, sagas...) })
}
