package engine

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/readback-go/readback/ledger"
)

// The notes of housekeeping say when a worker last did what one of all does.
const (
	noteSurvey = "housekeeping/survey"
	noteEnded  = "housekeeping/ended" // and the machine
	notePrune  = "housekeeping/prune"
)

// keepHouse does what no caller asks for. It watches an outbox that is too full, writes of
// processes of this machine that have ended, and what has been settled for long. Of
// all workers of a ledger, or of a machine, one does it at a time; what fails is tried
// again at the next turn.
func (w *worker) keepHouse(ctx context.Context) {
	every := max(houseEvery, w.o.Idle)
	for sleep(ctx, ctx, jittered(every)) {
		notes, ok := w.e.ledger.(ledger.Notes)
		if !ok {
			return
		}
		if s, ok := w.e.ledger.(ledger.Surveyor); ok {
			w.survey(ctx, notes, s, every)
		}
		if p, ok := w.e.ledger.(ledger.Pruner); ok && w.o.Retention.Keep > 0 {
			if mine, _ := w.turn(ctx, notes, notePrune, max(pruneEvery, every)); mine {
				w.tell(ctx, "nothing more was pruned", w.prune(ctx, p))
			}
		}
	}
}

// survey does what takes a count of all writes: of its ledger one worker does that,
// and of each machine where that one does not run.
func (w *worker) survey(ctx context.Context, notes ledger.Notes, surveyor ledger.Surveyor, every time.Duration) {
	mine, of := w.turn(ctx, notes, noteSurvey, every)
	here := mine
	if !mine && processes() != "" && !strings.HasSuffix(of, processes()) {
		here, _ = w.turn(ctx, notes, noteEnded+processes(), every)
	}
	if !here {
		return
	}
	s, err := surveyor.Survey(ctx)
	if err != nil {
		w.tell(ctx, "the writes were not counted", err)
		return
	}
	if mine {
		w.tell(ctx, "the outbox was not looked at", w.watchOutbox(ctx, notes, s))
	}
	w.tell(ctx, waitForLeases, w.inherit(ctx, s, 1))
}

func (w *worker) tell(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		w.e.opts.Logger.Warn(what, "error", err)
	}
}

// turn reports whether it is this worker's turn: no other one did it lately. of is the
// owner of the last turn before.
func (w *worker) turn(ctx context.Context, notes ledger.Notes, name string, every time.Duration) (mine bool, of string) {
	last, now, err := noteOf(ctx, notes, name)
	of = string(last.Value)
	if err != nil || last.Version != 0 && now.Sub(last.At) < every*4/5 {
		return false, of
	}
	last.Value = []byte(w.e.opts.Owner)
	_, err = notes.SetNote(ctx, last)
	return err == nil, of // ErrStale: another one was quicker
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
func (w *worker) watchOutbox(ctx context.Context, notes ledger.Notes, s ledger.Survey) error {
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
