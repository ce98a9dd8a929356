package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// restoreFresh is how old an engine's knowledge of the last restore may be: a stop takes longer to
// take effect everywhere, and [Options.Guards] prevent sends until then.
const restoreFresh = 500 * time.Millisecond

// restores is what an engine knows of the last restore.
type restores struct {
	mu    sync.Mutex
	last  ledger.Restore
	asked time.Time // zero: never
}

// restored returns the last restore of the ledger.
func (e *Engine) restored() (ledger.Restore, error) {
	r := &e.restores
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.asked.IsZero() && time.Since(r.asked) < restoreFresh {
		return r.last, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), ledgerTimeout)
	defer cancel()
	asked := time.Now()
	last, now, err := ledger.Restored(ctx, e.ledger)
	if err != nil {
		return last, fmt.Errorf("it is not known whether history is missing: %w", err)
	}
	e.clock.record(now, asked)
	r.last, r.asked = last, asked
	return last, nil
}

// mayHaveBeenSent reports whether the write may have been sent in a time of which the ledger lacks
// the history. A write that was held after a read may have been sent while it waited to be read: no
// more than that is assumed of it again.
func (t *task) mayHaveBeenSent() bool {
	return t.restore.Covers(t.rec) || t.rec.State == ledger.Queued && !t.rec.Restored.IsZero()
}

// assumed returns the event that the write may have been sent: a read precedes its next send, as after
// a send of unknown fate.
func (t *task) assumed() ledger.Event {
	ev := ledger.Event{Kind: ledger.EvRestored, LostFrom: t.restore.LostFrom(t.rec), LostUntil: t.restore.Until}
	if !t.restore.Covers(t.rec) {
		ev.LostFrom, ev.LostUntil = t.rec.Restored, t.rec.Restored
	}
	if t.rec.State != ledger.Review {
		ev.Rule, ev.Reason = "restore", "the ledger was restored, and lacks what was sent in a time: it may have been sent then"
	}
	return ev
}

// readHeld reads the destination for a held write, which may have been approved and sent in the missing
// time: until then nothing can be decided about it. A write that was not sent is held again. It reports
// whether it read.
func (e *Engine) readHeld(rec ledger.Record, claimed time.Time, l lifetime) (bool, error) {
	if rec.State != ledger.Held || rec.Delegated {
		return false, nil
	}
	if last, err := e.restored(); err != nil || !last.Covers(rec) {
		return false, err
	}
	t, err := e.newTask(rec, claimed, l)
	if err != nil {
		return true, e.unworkable(rec, err)
	}
	defer t.unsent()
	if err := t.commit(t.assumed()); err != nil {
		return true, err
	}
	return true, t.run()
}

// firstAfterRestore returns what precedes the next send of a write that may have been sent in the
// missing time: it is held if no approval of it is known, and the read that showed nothing of it is
// its pre-state.
func (t *task) firstAfterRestore() ([]ledger.Event, error) {
	if t.rec.Restored.IsZero() {
		return nil, nil
	}
	if unapproved, err := t.unapproved(); err != nil || unapproved {
		return []ledger.Event{t.held()}, err
	}
	if t.intent.Write != intent.Create || t.before != nil || t.judged.Verdict != verify.Absent {
		return nil, nil
	}
	evidence, err := t.scope().SealObservation(t.seen)
	if err != nil {
		return nil, &Error{ID: t.rec.ID, Known: KnownNothing, Err: err}
	}
	before := t.seen
	t.before = &before
	return []ledger.Event{{Kind: ledger.EvRead, Before: true, Verdict: t.judged.Verdict.String(), Reason: t.judged.Reason, Evidence: evidence}}, nil
}
