package webhooks

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

const (
	// every is how often a hook polls for changes that it was not notified of.
	every = time.Second
	// batch is how many changes are read before the cursor is stored: so many are read
	// again after a crash.
	batch = 100
	// leaseFor is how long one process of several handles a hook exclusively. If it dies, another
	// one takes over after that. Correctness does not depend on it.
	leaseFor = 15 * time.Second
	// failedFirst and failedMost bound the pause after the ledger failed, or was
	// full.
	failedFirst = 500 * time.Millisecond
	failedMost  = 30 * time.Second
)

// Prefix begins the names of destinations that are hooks: "webhook:" and the name of the
// hook. Writes there cause no notice, or notices would cause notices forever.
const Prefix = engine.OwnDestinations

// tool is the tool of all notices. No other write may name it.
const tool = engine.OwnTools + "notice"

// Engine is the part of an engine that a sender needs.
type Engine interface {
	Enqueue(ctx context.Context, w intent.WriteIntent) (ledger.ID, error)
}

// Hook is a subscriber to changes.
type Hook struct {
	// Name names it and, with [Prefix], its destination. Required.
	Name string
	// Tenants are the tenants whose changes it gets. Default: all.
	Tenants []string
	// Events are the event types that it gets; see [Events]. Default [defaultEvents].
	Events []string
	// Destinations are the destinations whose changes it gets. Default: all.
	Destinations []string
}

// Options configures a Sender. Only Hooks is required.
type Options struct {
	Hooks []Hook
	// Tenant owns messages that belong to no tenant's write, such as those about missed
	// changes. Default "default".
	Tenant string
	// ReviewUI is the address of the review UI, "https://readback.example". Default none:
	// messages name no page.
	ReviewUI string
	// Logger receives what an operator should see. Default: nothing.
	Logger *slog.Logger
}

// Sender makes notices of changes. Any number of them, in any number of processes, may
// handle the same hooks.
type Sender struct {
	ledger ledger.Ledger
	engine Engine
	opts   Options
	owner  string
}

// New makes a sender. The destinations of its hooks must be registered with the
// engine.
func New(l ledger.Ledger, e Engine, o Options) *Sender {
	if o.Tenant == "" {
		o.Tenant = "default"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.ReviewUI = strings.TrimRight(o.ReviewUI, "/")
	return &Sender{ledger: l, engine: e, opts: o, owner: rand.Text()[:10]}
}

// Work makes one notice of every change that a hook subscribes to, until ctx ends, and
// then returns nil. A new hook gets changes from then on. It continues after failures of
// the ledger.
func (s *Sender) Work(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, h := range s.opts.Hooks {
		wg.Go(func() { s.see(ctx, h) })
	}
	wg.Wait()
	return nil
}

// see handles one hook.
func (s *Sender) see(ctx context.Context, h Hook) {
	changed := s.ledger.Changed(ctx)
	failing := backoff.NewExponentialBackOff(backoff.WithInitialInterval(failedFirst),
		backoff.WithMaxInterval(failedMost), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		more, err := s.deliver(ctx, h)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				s.log(h).Warn("a webhook lags behind", "error", err)
			}
			pause.For(ctx, failing.NextBackOff())
		case more:
			failing.Reset()
		default:
			failing.Reset()
			await(ctx, changed)
		}
	}
}

func await(ctx context.Context, changed <-chan struct{}) {
	timer := time.NewTimer(every)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (s *Sender) log(h Hook) *slog.Logger { return s.opts.Logger.With("webhook", h.Name) }

// place is the progress of a hook, and which process handles it until when.
type place struct {
	Cursor string    `json:"cursor"`
	Owner  string    `json:"owner,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}

// deliver notifies a hook of the next changes, and reports whether there may be more.
func (s *Sender) deliver(ctx context.Context, h Hook) (more bool, err error) {
	note, at, now, err := s.place(ctx, h)
	switch {
	case err != nil:
		return false, err
	case note.Version == 0:
		return s.arrive(ctx, note)
	case at.Owner != s.owner && at.Until.After(now) && at.Until.Sub(now) <= leaseFor:
		return false, nil
	}
	changes, next, err := s.ledger.Follow(ctx, ledger.Following{After: at.Cursor, Limit: batch})
	switch {
	case errors.Is(err, ledger.ErrTooFar):
		return true, s.missed(ctx, h, note, at, now, err)
	case err != nil || len(changes) == 0:
		return false, err
	}
	if at.Owner != s.owner || at.Until.Before(now) {
		if note, err = s.keep(ctx, note, place{at.Cursor, s.owner, now.Add(leaseFor)}); err != nil {
			return false, lost(err)
		}
	}
	reached, err := s.notifyAll(ctx, h, changes)
	if err == nil {
		reached = next
	}
	if reached == "" {
		return false, err
	}
	_, stale := s.keep(ctx, note, place{reached, s.owner, now.Add(leaseFor)})
	return len(changes) == batch, errors.Join(err, lost(stale))
}

// lost is nil if another process was faster: it has done the same.
func lost(err error) error {
	if errors.Is(err, ledger.ErrStale) {
		return nil
	}
	return err
}

// notifyAll makes notices of changes, and returns how far it came.
func (s *Sender) notifyAll(ctx context.Context, h Hook, changes []ledger.Change) (reached string, err error) {
	for _, c := range changes {
		if h.wants(c) {
			if err := s.notify(ctx, h, c); err != nil {
				return reached, err
			}
		}
		reached = c.Cursor
	}
	return reached, nil
}

// place reads a hook's progress. If it cannot be read, the hook starts anew, and that is
// logged.
func (s *Sender) place(ctx context.Context, h Hook) (note ledger.Note, at place, now time.Time, err error) {
	name := notesPrefix + h.Name
	found, now, err := s.ledger.Notes(ctx, name)
	note = ledger.Note{Name: name}
	for _, n := range found {
		if n.Name == name {
			note = n
		}
	}
	if err == nil && note.Version != 0 {
		if bad := json.Unmarshal(note.Value, &at); bad != nil {
			err = fmt.Errorf("the note %q, the cursor of the hook, cannot be read: %w; remove it, and the hook gets what happens from then on", name, bad)
		}
	}
	return note, at, now, err
}

// arrive starts with changes from now on.
func (s *Sender) arrive(ctx context.Context, note ledger.Note) (more bool, err error) {
	latest, err := s.ledger.Latest(ctx)
	if err != nil {
		return false, err
	}
	_, err = s.keep(ctx, note, place{Cursor: latest})
	return false, lost(err)
}

func (s *Sender) keep(ctx context.Context, note ledger.Note, at place) (ledger.Note, error) {
	text, err := json.Marshal(at)
	if err != nil {
		return note, err
	}
	note.Value = text
	return s.ledger.SetNote(ctx, note)
}

// missed starts again with what is still there, if the hook's next change is gone. It
// logs that and notifies the hook.
func (s *Sender) missed(ctx context.Context, h Hook, note ledger.Note, at place, now time.Time, why error) error {
	s.log(h).Error("a webhook has missed something: the ledger has pruned its next changes", "error", why)
	if err := s.enqueue(ctx, h, s.gap(h, at.Cursor, now)); err != nil {
		return err
	}
	_, err := s.keep(ctx, note, place{"", s.owner, now.Add(leaseFor)})
	return lost(err)
}

// notify makes the notice of one change.
func (s *Sender) notify(ctx context.Context, h Hook, c ledger.Change) error {
	rec, err := s.ledger.Get(ctx, c.Tenant, c.ID)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) && !errors.Is(err, ledger.ErrCorrupt) {
		return err
	}
	return s.enqueue(ctx, h, s.notice(h, c, rec))
}

// enqueue records a notice. One that exists already, also with other words, was recorded
// by a process that then died, or at the same time by another one. One that can never be
// recorded is skipped, and that is logged: it must not block the others.
func (s *Sender) enqueue(ctx context.Context, h Hook, w intent.WriteIntent) error {
	id, err := s.engine.Enqueue(ctx, w)
	switch {
	case errors.Is(err, ledger.ErrDigestMismatch):
		return nil
	case errors.Is(err, intent.ErrInvalid):
		s.log(h).Error("a notice cannot be made", "step", w.Step, "error", err)
		return nil
	case err != nil:
		return fmt.Errorf("the notice %s: %w", w.Step, err)
	}
	s.log(h).Debug("a notice was recorded", "step", w.Step, "write", id)
	return nil
}
