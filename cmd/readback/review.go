package main

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
		Short: "What waits for a person, or a person's decision about it",
		Long: `Without arguments: what waits for a person, the oldest first. With an id and a
word: the decision of a person, who gives a name and a reason.

For writes in review:
  accept      take responsibility for the write as it is
  retry       send again, if that is provably harmless; with --force also where
              only you know that it is not there (it is read once more first)
  compensate  undo it by a write of its own
  abandon     give it up; whether it happened stays unknown
For held writes, within the time that is shown:
  approve     approve and send; where several reviewers must, each of them approves
  deny        do not send; nothing was sent
The caller of a write cannot approve it, nor the same reviewer twice. The event
of the decision keeps the trace that the environment variable TRACEPARENT names.

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
			return a.review(ctx, ledger.ID(args[0]), d, wait)
		}),
	}
	cmd.Flags().StringVar(&d.By, "by", "", "who decides (required)")
	cmd.Flags().StringVar(&d.Reason, "reason", "", "why (required)")
	cmd.Flags().StringVar(&d.Digest, "digest", "", "of what you saw: refused when the write is another by now")
	cmd.Flags().BoolVar(&d.Force, "force", false, "with retry: vouch that the effect is not there")
	waitFlag(cmd, &wait)
	return cmd
}

var decisions = []engine.Word{
	engine.WordAccept, engine.WordRetry, engine.WordCompensate, engine.WordAbandon, engine.WordApprove, engine.WordDeny,
}

func (a *app) review(ctx context.Context, id ledger.ID, decision engine.Decision, wait time.Duration) (int, error) {
	switch {
	case !slices.Contains(decisions, decision.Word):
		return 0, usagef("the word is %q; want one of %v", decision.Word, decisions)
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
