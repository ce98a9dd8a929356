package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
)

func (a *app) pruneCommand() *cobra.Command {
	var keep, remember string
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Forget writes that were settled long ago, of every tenant",
		Long: `Forget writes that were settled long ago, of every tenant, in small steps beside
whatever else works on the ledger.

What was settled longer ago than --keep loses its intent, evidence and events; a
tombstone keeps its keys and its outcome, so that a repeat of it is answered and
not sent again. What was settled longer ago than --remember is forgotten, and a
repeat of it is a new write. Writes that are not settled, or owe a recheck, stay.
A duration is written as 30d or 12h.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.prune(ctx, keep, remember) }),
	}
	cmd.Flags().StringVar(&keep, "keep", "", "how long a settled write keeps everything (default retention.keep of the configuration)")
	cmd.Flags().StringVar(&remember, "remember", "", "how long its keys and outcome stay known (default retention.remember of the configuration)")
	return cmd
}

func (a *app) prune(ctx context.Context, keep, remember string) (int, error) {
	var asked config.Retention
	for _, f := range []struct {
		name, text string
		into       *time.Duration
	}{{"keep", keep, &asked.Keep}, {"remember", remember, &asked.Remember}} {
		if f.text == "" {
			continue
		}
		var err error
		if *f.into, err = config.ParseAge(f.text); err != nil {
			return 0, usagef("--%s: %w", f.name, err)
		}
	}
	d, reg, err := a.registered(ctx, config.OpenOptions{})
	if err != nil {
		return 0, err
	}
	defer d.close()
	asked.Keep = cmp.Or(asked.Keep, d.config.Retention.Keep)
	asked.Remember = cmp.Or(asked.Remember, d.config.Retention.Remember)
	longest := longestWindow(reg)
	switch {
	case asked.Keep == 0:
		return 0, usagef("--keep is missing, and so is retention.keep in the configuration; want how long a settled write keeps everything, such as 30d")
	case asked.Remember == 0:
		return 0, usagef("--remember is missing, and so is retention in the configuration; want how long keys stay known, such as 400d")
	case asked.Remember < asked.Keep:
		return 0, usagef("--remember is %s; want at least --keep, %s", report.Short(asked.Remember), report.Short(asked.Keep))
	case asked.Remember < longest.lasts:
		return 0, usagef("--remember is %s; want at least %s, %s: a repeat within it would be sent again", report.Short(asked.Remember), report.Short(longest.lasts), longest.what)
	}
	done, err := d.pruneAll(ctx, asked)
	if done.Error, err = partly(err); err != nil && done.Buried+done.Forgotten > 0 {
		err = fmt.Errorf("%s before it failed, and that stays so: %w", done.text(), err)
	}
	if err != nil {
		return 0, err
	}
	return a.part(done, done.Error, func() string { return done.text() + ".\n" })
}

// pruned is what a prune forgot.
type pruned struct {
	Buried    int `json:"buried"`
	Forgotten int `json:"forgotten"`
	// Error names writes that were left alone because they cannot be read.
	Error *failure `json:"error,omitempty"`
}

func (p pruned) text() string {
	return fmt.Sprintf("made %d settled writes tombstones and forgot %d tombstones", p.Buried, p.Forgotten)
}

// pruneAll forgets in small steps until nothing is left to be forgotten.
func (d *desk) pruneAll(ctx context.Context, r config.Retention) (pruned, error) {
	pruner, ok := d.ledger.(ledger.Pruner)
	if !ok {
		return pruned{}, errors.New("this ledger cannot be pruned")
	}
	var done pruned
	for {
		step, err := pruner.Prune(ctx, ledger.Prune{Keep: r.Keep, Remember: r.Remember, Limit: pruneBatch})
		done.Buried += step.Buried
		done.Forgotten += step.Forgotten
		var unread *ledger.UnreadError // of everything else, there may be more
		if err != nil && !errors.As(err, &unread) || step.Buried+step.Forgotten == 0 {
			return done, err
		}
		d.log.Info("pruning", "buried", done.Buried, "forgotten", done.Forgotten)
	}
}

// pruneNowAndThen prunes from time to time until ctx ends.
func (d *desk) pruneNowAndThen(ctx context.Context) {
	timer := time.NewTimer(min(firstPrune, d.config.Retention.Every))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		done, err := d.pruneAll(ctx, d.config.Retention)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			d.log.Warn("old writes could not be pruned; it is tried again", "error", err, "in", d.config.Retention.Every)
		case done.Buried+done.Forgotten > 0:
			d.log.Info("pruned", "buried", done.Buried, "forgotten", done.Forgotten)
		}
		timer.Reset(d.config.Retention.Every)
	}
}

// window is a time within which a repeat must be recognised.
type window struct {
	lasts time.Duration
	what  string
}

// longestWindow is the longest within which a repeat must be recognised here.
func longestWindow(reg *connectors.Registry) window {
	longest := window{idempotencyWindow, "the window of idempotency keys"}
	for _, p := range reg.Profiles() {
		for _, d := range p.NativeWindow {
			if d > longest.lasts {
				longest = window{d, fmt.Sprintf("for which %q recognises repeats of kind %q", report.Safe(p.Destination), report.Safe(p.Kind))}
			}
		}
	}
	return longest
}

// retention refuses to forget what a repeat must still meet.
func (d *desk) retention(reg *connectors.Registry) error {
	longest := longestWindow(reg)
	return d.config.CheckRetention(longest.lasts, longest.what)
}
