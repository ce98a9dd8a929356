package audit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxStale is how often in a row another sealer may be faster before it is logged: two
	// sealers are never that even, and the end of the chain may have been altered.
	maxStale = 10
	// activeFor is how long a silent sealer counts as active, and activeReport how often an
	// active one reports. Two active at once do no harm.
	activeFor    = 30 * time.Second
	activeReport = 10 * time.Second
)

// Work seals and signs until ctx ends, while this sealer is the active one: of all sealers of a
// ledger one is active, and another takes over when it stops reporting. Failures are tried again
// and logged. It always returns nil.
func (s *Sealer) Work(ctx context.Context) error {
	var stores sync.WaitGroup
	defer stores.Wait()
	for _, k := range s.keep {
		stores.Go(func() { k.work(ctx, s.o.Logger) })
	}
	var t activeState
	for {
		if s.mine(ctx, &t) {
			s.once(ctx, &t)
		}
		if !pause.For(ctx, s.o.Every) {
			return nil
		}
	}
}

// activeState is a sealer's knowledge of whether it is active.
type activeState struct {
	mine     bool
	reported time.Time // when that was last confirmed
	caught   bool      // earlier moves are known
	signed   time.Time
	failed   bool // the last time
	stale    int  // how often in a row another sealer was faster, or seemed to be
}

// mine reports whether this sealer is active, and reports that to others periodically.
func (s *Sealer) mine(ctx context.Context, t *activeState) bool {
	if !t.reported.IsZero() && time.Since(t.reported) < activeReport {
		return t.mine
	}
	t.reported = time.Now()
	was := t.mine
	t.mine = s.take(ctx)
	if t.mine && !was {
		t.caught = false
	}
	return t.mine
}

func (s *Sealer) take(ctx context.Context) bool {
	found, now, err := s.ledger.Notes(ctx, noteActive)
	if err != nil {
		return false
	}
	note := ledger.Note{Name: noteActive}
	for _, n := range found {
		if n.Name == noteActive {
			note = n
		}
	}
	if note.Version != 0 && string(note.Value) != s.o.Owner && now.Sub(note.At) < activeFor && !note.At.After(now.Add(activeFor)) {
		return false
	}
	note.Value = []byte(s.o.Owner)
	_, err = s.ledger.SetNote(ctx, note)
	return err == nil
}

// once seals new events, and signs heads when due.
func (s *Sealer) once(ctx context.Context, t *activeState) {
	_, err := s.Seal(ctx)
	if t.stale++; !errors.Is(err, ledger.ErrStale) {
		t.stale = 0
	}
	if !t.caught { // one chain that cannot be extended stops no head of another
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
