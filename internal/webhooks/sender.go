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

// Prefix begins the names of destinations that are hooks: "webhook:" and the name
// of the hook. What is written there is not told of, or notices would make
// notices for ever.
const Prefix = engine.OwnDestinations

// tool is that of all notices. Nobody else may name it.
const tool = engine.OwnTools + "notice"

// Ledger is what a sender needs of a ledger; all drivers have it.
type Ledger interface {
	ledger.Follower
	ledger.Notes
	Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error)
}

// Engine is what a sender needs of an engine.
type Engine interface {
	Enqueue(ctx context.Context, w intent.WriteIntent) (ledger.ID, error)
}

// Hook is somebody who is told.
type Hook struct {
	// Name names it, and with [Prefix] its destination. Required.
	Name string
	// Tenants are those that it is told of. Default: all.
	Tenants []string
	// Events are the types of which it is told; see [Events]. Default
	// [DefaultEvents].
	Events []string
	// Destinations are those of which it is told. Default: all.
	Destinations []string
}

// Options are what a sender can be told. Only Hooks is required.
type Options struct {
	Hooks []Hook
	// Tenant owns messages that are about no tenant's write: that something was
	// missed. Default "default".
	Tenant string
	// Desk is the address under which people look at writes,
	// "https://readback.example". Default none: messages name no page.
	Desk string
	// Logger receives what an operator should see. Default: nothing.
	Logger *slog.Logger
}

// Sender makes notices of changes. Any number of them, in any number of processes,
// may see to the same hooks.
type Sender struct {
	ledger Ledger
	engine Engine
	opts   Options
	owner  string
}

// New makes a sender. The destinations of its hooks must be registered with the
// engine.
func New(l Ledger, e Engine, o Options) *Sender {
	if o.Tenant == "" {
		o.Tenant = "default"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Desk = strings.TrimRight(o.Desk, "/")
	return &Sender{ledger: l, engine: e, opts: o, owner: rand.Text()[:10]}
}

// Work makes one notice of every change that a hook is to be told of, until ctx
// ends, and then returns nil. A hook that is new is told of what happens from then
// on. It goes on after failures of the ledger.
func (s *Sender) Work(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, h := range s.opts.Hooks {
		wg.Go(func() { s.see(ctx, h) })
	}
	wg.Wait()
	return nil
}

// see sees to one hook.
func (s *Sender) see(ctx context.Context, h Hook) {
	var told <-chan struct{}
	if herald, ok := s.ledger.(ledger.Herald); ok {
		told = herald.Told(ctx)
	}
	failing := backoff.NewExponentialBackOff(backoff.WithInitialInterval(failedFirst),
		backoff.WithMaxInterval(failedMost), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		more, err := s.turn(ctx, h)
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
			await(ctx, told)
		}
	}
}

func await(ctx context.Context, told <-chan struct{}) {
	timer := time.NewTimer(every)
	defer timer.Stop()
	select {
	case <-told:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (s *Sender) log(h Hook) *slog.Logger { return s.opts.Logger.With("webhook", h.Name) }

// place is how far a hook was told, and who sees to it until when.
type place struct {
	Cursor string    `json:"cursor"`
	Owner  string    `json:"owner,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}

// turn tells a hook of the next changes, and reports whether there may be more.
func (s *Sender) turn(ctx context.Context, h Hook) (more bool, err error) {
	note, at, now, err := s.place(ctx, h)
	switch {
	case err != nil:
		return false, err
	case note.Version == 0:
		return s.arrive(ctx, note)
	case at.Owner != s.owner && at.Until.After(now) && at.Until.Sub(now) <= turnFor:
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
		if note, err = s.keep(ctx, note, place{at.Cursor, s.owner, now.Add(turnFor)}); err != nil {
			return false, lost(err)
		}
	}
	reached, err := s.tellAll(ctx, h, changes)
	if err == nil {
		reached = next
	}
	if reached == "" {
		return false, err
	}
	_, stale := s.keep(ctx, note, place{reached, s.owner, now.Add(turnFor)})
	return len(changes) == batch, errors.Join(err, lost(stale))
}

// lost is nil where another process was quicker: it has done the same.
func lost(err error) error {
	if errors.Is(err, ledger.ErrStale) {
		return nil
	}
	return err
}

// tellAll makes notices of changes, and says how far it came.
func (s *Sender) tellAll(ctx context.Context, h Hook, changes []ledger.Change) (reached string, err error) {
	for _, c := range changes {
		if h.wants(c) {
			if err := s.tell(ctx, h, c); err != nil {
				return reached, err
			}
		}
		reached = c.Cursor
	}
	return reached, nil
}

// place reads how far a hook was told. What cannot be read is told from where it
// is new; that is said.
func (s *Sender) place(ctx context.Context, h Hook) (note ledger.Note, at place, now time.Time, err error) {
	name := "webhooks/" + h.Name
	found, now, err := s.ledger.Notes(ctx, name)
	note = ledger.Note{Name: name}
	for _, n := range found {
		if n.Name == name {
			note = n
		}
	}
	if err == nil && note.Version != 0 {
		if bad := json.Unmarshal(note.Value, &at); bad != nil {
			err = fmt.Errorf("the note %q, which says how far the hook was told, cannot be read: %w; remove it, and the hook is told of what happens from then on", name, bad)
		}
	}
	return note, at, now, err
}

// arrive begins with what happens from now on.
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

// missed begins again with what is still there, when what the hook was to be told
// of next is not, and says so: in the log, and to the hook.
func (s *Sender) missed(ctx context.Context, h Hook, note ledger.Note, at place, now time.Time, why error) error {
	s.log(h).Error("a webhook has missed something: the ledger has pruned what it was to be told of next", "error", why)
	if err := s.enqueue(ctx, h, s.gap(h, at.Cursor, now)); err != nil {
		return err
	}
	_, err := s.keep(ctx, note, place{"", s.owner, now.Add(turnFor)})
	return lost(err)
}

// tell makes the notice of one change.
func (s *Sender) tell(ctx context.Context, h Hook, c ledger.Change) error {
	rec, err := s.ledger.Get(ctx, c.Tenant, c.ID)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) && !errors.Is(err, ledger.ErrCorrupt) {
		return err
	}
	return s.enqueue(ctx, h, s.notice(h, c, rec))
}

// enqueue records a notice. One that is there already, also with other words, was
// recorded by a process that then died, or at the same time by another one. One
// that can never be is left out, and that is said: it must not hold up the others.
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
