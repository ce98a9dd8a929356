package audit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

// Work seals and signs until ctx ends, when it is this sealer's turn: of all that
// work on a ledger one does, and another takes over when it says nothing any more.
// What fails is tried again, and told to the logger. It fails only where the ledger
// can never be sealed ([ErrCannot]).
func (s *Sealer) Work(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	var keepers sync.WaitGroup
	defer keepers.Wait()
	for _, k := range s.keep {
		keepers.Go(func() { k.work(ctx, s.o.Logger) })
	}
	var t turn
	for {
		if s.mine(ctx, &t) {
			s.once(ctx, &t)
		}
		if !pause.For(ctx, s.o.Every) {
			return nil
		}
	}
}

// turn is what a sealer knows about whose turn it is.
type turn struct {
	mine   bool
	told   time.Time // when that was last made sure of
	caught bool      // what moved before is known
	signed time.Time
	failed bool // the last time
	stale  int  // how often in a row another sealer was quicker, or seemed to be
}

// mine reports whether it is this sealer's turn, and says so to others now and
// then.
func (s *Sealer) mine(ctx context.Context, t *turn) bool {
	if !t.told.IsZero() && time.Since(t.told) < turnTold {
		return t.mine
	}
	t.told = time.Now()
	was := t.mine
	t.mine = s.take(ctx)
	if t.mine && !was {
		t.caught = false
	}
	return t.mine
}

func (s *Sealer) take(ctx context.Context) bool {
	found, now, err := s.store.notes.Notes(ctx, noteTurn)
	if err != nil {
		return false
	}
	note := ledger.Note{Name: noteTurn}
	for _, n := range found {
		if n.Name == noteTurn {
			note = n
		}
	}
	if note.Version != 0 && string(note.Value) != s.o.Owner && now.Sub(note.At) < turnLasts && !note.At.After(now.Add(turnLasts)) {
		return false
	}
	note.Value = []byte(s.o.Owner)
	if _, err = s.store.notes.SetNote(ctx, note); err != nil {
		return false
	}
	s.mu.Lock()
	s.on = false // somebody may have switched it off
	s.mu.Unlock()
	return true
}

// once seals what is there, and signs heads when it is time.
func (s *Sealer) once(ctx context.Context, t *turn) {
	_, err := s.Seal(ctx)
	if t.stale++; !errors.Is(err, ledger.ErrStale) {
		t.stale = 0
	}
	if !t.caught { // one chain that cannot go on stops no head of another
		caught := s.catchUp(ctx)
		err, t.caught = errors.Join(err, caught), caught == nil || errors.Is(caught, ledger.ErrCorrupt)
	}
	if time.Since(t.signed) >= s.o.Heads {
		_, signed := s.SignHeads(ctx)
		if err = errors.Join(err, signed); signed == nil || errors.Is(signed, ledger.ErrCorrupt) {
			t.signed = time.Now()
		}
	}
	switch {
	case ctx.Err() != nil || errors.Is(err, ledger.ErrStale) && t.stale < maxStale:
	case err != nil && !t.failed:
		t.failed = true
		s.o.Logger.Error("the audit chain could not be sealed; it is tried again, and no write waits for it", "error", err)
	case err == nil && t.failed:
		t.failed = false
		s.o.Logger.Info("the audit chain is sealed again")
	}
}
