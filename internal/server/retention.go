package server

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// Pruned is what a prune deleted.
type Pruned struct {
	Compacted int `json:"buried"`
	Forgotten int `json:"forgotten"`
}

// Text describes it.
func (p Pruned) Text() string {
	return fmt.Sprintf("made %d settled writes tombstones and forgot %d tombstones", p.Compacted, p.Forgotten)
}

// PruneAll prunes in small steps until nothing is left to prune. Progress gets what was done,
// after each.
func (d *Instance) PruneAll(ctx context.Context, r config.Retention, progress func(Pruned)) (Pruned, error) {
	var done Pruned
	rule := r.Rule()
	rule.Limit = pruneBatch
	for {
		step, err := d.Ledger.Prune(ctx, rule)
		done.Compacted += step.Compacted
		done.Forgotten += step.Forgotten
		var unread *ledger.UnreadError // about one batch; there may be more
		if err != nil && !errors.As(err, &unread) || step.Compacted+step.Forgotten == 0 {
			return done, err
		}
		progress(done)
	}
}

func (d *Instance) logPruned(done Pruned) {
	d.Log.Info("pruning", "compacted", done.Compacted, "forgotten", done.Forgotten)
}

// Prunable counts what [Instance.PruneAll] would delete.
func (d *Instance) Prunable(ctx context.Context, r config.Retention) (ledger.Pruned, error) {
	rule := r.Rule()
	rule.DryRun = true
	return d.Ledger.Prune(ctx, rule)
}

// PruneRegularly prunes at intervals until ctx ends. If everything is kept for ever, it
// only keeps the notice of a default elsewhere from ending.
func (d *Instance) PruneRegularly(ctx context.Context) {
	r := d.Config.Retention
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
		var done Pruned
		begun, err := d.retentionBegun(ctx)
		if err == nil && begun && r.Prunes() {
			done, err = d.PruneAll(ctx, r, d.logPruned)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			d.Log.Warn("old writes could not be pruned; it is tried again", "error", err, "in", r.Every)
		case done.Compacted+done.Forgotten > 0:
			d.Log.Info("pruned", "compacted", done.Compacted, "forgotten", done.Forgotten)
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
func (d *Instance) announceRetention(ctx context.Context) {
	begun, err := d.retentionBegun(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		d.Log.Warn("the start of the retention could not be recorded; it is tried again before old writes are pruned", "error", err)
	case !begun:
		if text, err := d.DefaultRetention(ctx); err == nil {
			d.Log.Warn("retention is not configured: " + text)
		}
	}
}

// retentionBegun reports whether the retention is already in force. The default begins a
// notice after the first worker ran with it.
func (d *Instance) retentionBegun(ctx context.Context) (bool, error) {
	for {
		found, now, err := d.Ledger.Notes(ctx, retentionNote)
		var change ledger.Note
		switch {
		case err != nil:
			return false, err
		case d.Config.Retention.Default && len(found) > 0:
			return now.Sub(found[0].At) >= retentionNotice, nil
		case d.Config.Retention.Default:
			change = ledger.Note{Name: retentionNote, Value: []byte(d.Config.Retention.Keep.String())}
		case len(found) == 0:
			return true, nil
		default:
			change = ledger.Note{Name: retentionNote, Version: found[0].Version}
		}
		if _, err := d.Ledger.SetNote(ctx, change); err != nil && !errors.Is(err, ledger.ErrStale) {
			return false, err
		}
	}
}

// DefaultRetention describes what the default retention will prune and from when on, ""
// where one is configured. It records nothing.
func (d *Instance) DefaultRetention(ctx context.Context) (string, error) {
	r := d.Config.Retention
	if !r.Default {
		return "", nil
	}
	found, now, err := d.Ledger.Notes(ctx, retentionNote)
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

// window is a time within which a repeat must be recognised.
type window struct {
	Lasts time.Duration
	What  string
}

// LongestWindow is the longest window within which a repeat must be recognised here.
func LongestWindow(reg *connectors.Registry) window {
	longest := window{IdempotencyWindow, "the window of idempotency keys"}
	for _, p := range reg.Profiles() {
		for _, d := range p.NativeWindow {
			if d > longest.Lasts {
				longest = window{d, fmt.Sprintf("for which %q recognises repeats of kind %q", report.Safe(p.Destination), report.Safe(p.Kind))}
			}
		}
	}
	return longest
}

// CheckRetention refuses to prune keys that a repeat must still find. The default is extended
// instead.
func (d *Instance) CheckRetention(reg *connectors.Registry) error {
	longest := LongestWindow(reg)
	if r := &d.Config.Retention; r.Default {
		r.Remember = max(r.Remember, longest.Lasts)
	}
	return d.Config.CheckRetention(longest.Lasts, longest.What)
}
