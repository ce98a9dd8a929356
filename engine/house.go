package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/readback-go/readback/ledger"
)

// The notes of housekeeping say when a worker last did what one of all does.
const (
	noteSurvey = "housekeeping/survey"
	notePrune  = "housekeeping/prune"
)

// keepHouse looks after what nobody asks for: an outbox that is too full, and
// what has been settled for long. Of all workers of a ledger one does it at a
// time; what fails is tried again at the next turn.
func (w *worker) keepHouse(ctx context.Context) {
	every := max(houseEvery, w.o.Idle)
	for sleep(ctx, ctx, jittered(every)) {
		notes, ok := w.e.ledger.(ledger.Notes)
		if !ok {
			return
		}
		if s, ok := w.e.ledger.(ledger.Surveyor); ok && w.turn(ctx, notes, noteSurvey, every) {
			w.tell(ctx, "the outbox was not looked at", w.watchOutbox(ctx, notes, s))
		}
		if p, ok := w.e.ledger.(ledger.Pruner); ok && w.o.Retention.Keep > 0 && w.turn(ctx, notes, notePrune, max(pruneEvery, every)) {
			w.tell(ctx, "nothing more was pruned", w.prune(ctx, p))
		}
	}
}

func (w *worker) tell(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		w.e.opts.Logger.Warn(what, "error", err)
	}
}

// turn reports whether it is this worker's turn: no other one did it lately.
func (w *worker) turn(ctx context.Context, notes ledger.Notes, name string, every time.Duration) bool {
	last, now, err := noteOf(ctx, notes, name)
	if err != nil || last.Version != 0 && now.Sub(last.At) < every*4/5 {
		return false
	}
	last.Value = []byte(w.e.opts.Owner)
	_, err = notes.SetNote(ctx, last)
	return err == nil // ErrStale: another one was quicker
}

// noteOf is one note, with version 0 when there is none.
func noteOf(ctx context.Context, notes ledger.Notes, name string) (ledger.Note, time.Time, error) {
	found, now, err := notes.Notes(ctx, name)
	for _, n := range found {
		if n.Name == name {
			return n, now, err
		}
	}
	return ledger.Note{Name: name}, now, err
}

// watchOutbox says that the outbox is full when it passes its bound, and takes
// it back when it has fallen well below.
func (w *worker) watchOutbox(ctx context.Context, notes ledger.Notes, surveyor ledger.Surveyor) error {
	s, err := surveyor.Survey(ctx)
	if err != nil {
		return err
	}
	note, _, err := noteOf(ctx, notes, ledger.FullNote)
	if err != nil {
		return err
	}
	full := note.Version != 0
	switch {
	case !full && s.Outbox > w.o.MaxOutbox:
		if note.Value, err = json.Marshal(map[string]int{"waiting": s.Outbox, "most": w.o.MaxOutbox}); err != nil {
			return err
		}
	case full && s.Outbox < w.o.MaxOutbox*outboxEmptied/100:
		note.Value = nil
	default:
		return nil
	}
	_, err = notes.SetNote(ctx, note)
	return err
}

// prune forgets in small steps, with pauses between them.
func (w *worker) prune(ctx context.Context, pruner ledger.Pruner) error {
	p := w.o.Retention
	if p.Limit <= 0 {
		p.Limit = pruneStep
	}
	p.Remember = max(p.Remember, p.Keep)
	for {
		done, err := pruner.Prune(ctx, p)
		if err != nil || done.Buried+done.Forgotten < p.Limit {
			return err
		}
		if !sleep(ctx, ctx, jittered(prunePause)) {
			return nil
		}
	}
}
