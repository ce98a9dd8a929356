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

const (
	// pruneBatch is how many writes one step of a prune deletes: a transaction of
	// milliseconds, so that no caller waits for it.
	pruneBatch = 500
	// retentionNotice is how long the default retention waits after it was announced: an
	// operator who reads logs or the status once a month sees it.
	retentionNotice = 30 * day
	day             = 24 * time.Hour
	// firstPrune is how long a worker works before it first prunes: due work comes first
	// after a stop, and many workers that start together should not all begin with it.
	firstPrune = time.Minute
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
A duration is written as 30d or 12h. A tenant or a destination with a time of its own
(retention.tenants and retention.destinations of the configuration) keeps it, whatever
--keep says. Without retention in the configuration both flags are needed: the default of
400 days holds for workers alone.`,
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
	if r := d.config.Retention; !r.Default { // which the operator has configured
		asked.Keep, asked.Remember = cmp.Or(asked.Keep, r.Keep), cmp.Or(asked.Remember, r.Remember)
		asked.Tenants, asked.Destinations = r.Tenants, r.Destinations
	}
	longest := longestWindow(reg)
	switch {
	case asked.Keep == 0:
		return 0, usagef("--keep is missing, and so is retention.keep in the configuration; want how long a settled write keeps everything, such as 30d")
	case asked.Remember == 0:
		return 0, usagef("--remember is missing, and so is retention in the configuration; want how long keys stay known, such as 400d")
	case asked.Remember < asked.Keep:
		return 0, usagef("--remember is %s; want at least --keep, %s", report.Short(asked.Remember), spelledKeep(asked.Keep))
	case !asked.Prunes():
		return 0, usagef("retention.keep is forever; nothing is pruned. Give --keep and --remember to prune once")
	case asked.Remember < longest.lasts:
		return 0, usagef("--remember is %s; want at least %s, %s: a repeat within it would be sent again", report.Short(asked.Remember), report.Short(longest.lasts), longest.what)
	}
	if _, err := asked.Rule().Checked(); err != nil {
		return 0, usagef("%w", err)
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

// pruned is what a prune deleted.
type pruned struct {
	Buried    int `json:"buried"`
	Forgotten int `json:"forgotten"`
	// Error names writes that were not pruned because they cannot be read.
	Error *failure `json:"error,omitempty"`
}

func (p pruned) text() string {
	return fmt.Sprintf("made %d settled writes tombstones and forgot %d tombstones", p.Buried, p.Forgotten)
}

// pruneAll prunes in small steps until nothing is left to prune.
func (d *opened) pruneAll(ctx context.Context, r config.Retention) (pruned, error) {
	var done pruned
	rule := r.Rule()
	rule.Limit = pruneBatch
	for {
		step, err := d.ledger.Prune(ctx, rule)
		done.Buried += step.Compacted
		done.Forgotten += step.Forgotten
		var unread *ledger.UnreadError // about one batch; there may be more
		if err != nil && !errors.As(err, &unread) || step.Compacted+step.Forgotten == 0 {
			return done, err
		}
		d.log.Info("pruning", "buried", done.Buried, "forgotten", done.Forgotten)
	}
}

// pruneNowAndThen prunes at intervals until ctx ends. If everything is kept for ever, it
// only keeps the notice of a default elsewhere from ending.
func (d *opened) pruneNowAndThen(ctx context.Context) {
	r := d.config.Retention
	if r.Keep == 0 { // --no-prune
		return
	}
	d.announceRetention(ctx)
	timer := time.NewTimer(min(firstPrune, r.Every))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		var done pruned
		begun, err := d.retentionBegun(ctx)
		if err == nil && begun && r.Prunes() {
			done, err = d.pruneAll(ctx, r)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			d.log.Warn("old writes could not be pruned; it is tried again", "error", err, "in", r.Every)
		case done.Buried+done.Forgotten > 0:
			d.log.Info("pruned", "buried", done.Buried, "forgotten", done.Forgotten)
		}
		timer.Reset(r.Every)
	}
}

// retentionNote is the note that records when a worker first ran with the default
// retention. A worker with a configured one deletes it, so that the notice begins again
// when the setting is removed.
const retentionNote = "retention/default"

// announceRetention records the announcement of the default retention, and logs what to
// set.
func (d *opened) announceRetention(ctx context.Context) {
	begun, err := d.retentionBegun(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		d.log.Warn("the start of the retention could not be recorded; it is tried again before old writes are pruned", "error", err)
	case !begun:
		if text, err := d.defaultRetention(ctx); err == nil {
			d.log.Warn("retention is not configured: " + text)
		}
	}
}

// retentionBegun reports whether the retention is already in force. The default begins a
// notice after the first worker ran with it.
func (d *opened) retentionBegun(ctx context.Context) (bool, error) {
	for {
		found, now, err := d.ledger.Notes(ctx, retentionNote)
		var change ledger.Note
		switch {
		case err != nil:
			return false, err
		case d.config.Retention.Default && len(found) > 0:
			return now.Sub(found[0].At) >= retentionNotice, nil
		case d.config.Retention.Default:
			change = ledger.Note{Name: retentionNote, Value: []byte(d.config.Retention.Keep.String())}
		case len(found) == 0:
			return true, nil
		default:
			change = ledger.Note{Name: retentionNote, Version: found[0].Version}
		}
		if _, err := d.ledger.SetNote(ctx, change); err != nil && !errors.Is(err, ledger.ErrStale) {
			return false, err
		}
	}
}

// defaultRetention describes what the default retention will prune and from when on, ""
// where one is configured. It records nothing.
func (d *opened) defaultRetention(ctx context.Context) (string, error) {
	r := d.config.Retention
	if !r.Default {
		return "", nil
	}
	found, now, err := d.ledger.Notes(ctx, retentionNote)
	if err != nil {
		return "", err
	}
	from := fmt.Sprintf("from %d days after the first start of `readback serve` or `readback work` on", retentionNotice/day)
	if len(found) > 0 {
		from = "from " + found[0].At.Add(retentionNotice).UTC().Format(time.RFC3339) + " on"
		if now.Sub(found[0].At) >= retentionNotice {
			from = "since " + found[0].At.Add(retentionNotice).UTC().Format(time.RFC3339)
		}
	}
	return fmt.Sprintf("%s, writes that settled more than %d days ago become tombstones, which are forgotten after %d; retention.keep: forever keeps them", from, r.Keep/day, r.Remember/day), nil
}

// spelledKeep is a retention time, for a sentence.
func spelledKeep(keep time.Duration) string {
	if keep == ledger.Forever {
		return "ever"
	}
	return report.Short(keep)
}

// window is a time within which a repeat must be recognised.
type window struct {
	lasts time.Duration
	what  string
}

// longestWindow is the longest window within which a repeat must be recognised here.
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

// retention refuses to prune keys that a repeat must still find. The default is extended
// instead.
func (d *opened) retention(reg *connectors.Registry) error {
	longest := longestWindow(reg)
	if r := &d.config.Retention; r.Default {
		r.Remember = max(r.Remember, longest.lasts)
	}
	return d.config.CheckRetention(longest.lasts, longest.what)
}
