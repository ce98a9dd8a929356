package engine_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

func (h *history) step(m move) {
	switch m.Kind {
	case "submit":
		h.submit(m, h.plan.intent(m.Write))
	case "crowd":
		var wg sync.WaitGroup
		for n := range 2 * modelEngines {
			one := m
			one.Engine = n % modelEngines
			h.process(one.Engine)
			wg.Go(func() { h.submit(one, h.plan.intent(m.Write)) })
		}
		wg.Wait()
	case "other":
		w := h.plan.intent(m.Write)
		w.Payload = intent.Fields{"note": "another wish"}
		if w.Write == intent.Delete {
			w.Payload, w.Require = nil, intent.Fields{"note": "another wish"}
		}
		h.submit(m, w)
	case "fault":
		if f, ok := h.plan.fault(m); ok {
			h.set(f)
		}
	case "pass":
		h.pass(m.Pass)
	case "die":
		h.process(m.Engine)
		h.lives[m.Engine].doom(m.Calls, m.How)
	case "decide":
		h.decide(m)
	case "foreign":
		h.foreign(m)
	case "undo":
		h.undo(m)
	}
}

// undo requests the undo of a write that may be settled. Its outcome may be returned after the
// process that begins it has died.
func (h *history) undo(m move) {
	ctx, cancel := context.WithTimeout(context.Background(), m.Pass)
	defer cancel()
	e := h.process(m.Engine)
	rec, there := h.recorded(m.Write)
	if !there {
		return
	}
	h.reported[m.Write] = ""
	out, err := e.Undo(ctx, "acme", rec.ID, engine.Undoing{By: "ada", Reason: "model"})
	after, _ := h.recorded(m.Write)
	switch {
	case err == nil && out.Status == ledger.Verified && after.Sends > 0:
		h.fail("write %d was to be undone, and is reported as verified%s", m.Write, h.life(rec.ID))
	case errors.Is(err, engine.ErrNotWaiting) && after.Child != rec.Child:
		h.fail("write %d is not to be undone, and is%s", m.Write, h.life(rec.ID))
	}
}

// foreign is another actor's change of the records.
func (h *history) foreign(m move) {
	there := h.world.Records(h.orderID(m.Write))
	switch {
	case len(there) == 0:
		h.foreignRecord(m.Write)
	case m.Times == 1:
		_, _ = h.world.Edit(there[0].ID, intent.Fields{"note": "theirs " + m.Pass.String()})
	case m.Times == 2:
		_, _ = h.world.Edit(there[0].ID, intent.Fields{"amount_cents": jsonNumber(7)})
	default:
		_ = h.world.Remove(there[0].ID) // it is there: see above
	}
}

func (h *history) decide(m move) {
	ctx, cancel := context.WithTimeout(context.Background(), m.Pass)
	defer cancel()
	e := h.process(m.Engine)
	rec, there := h.recorded(m.Write)
	if !there {
		return
	}
	// During the decision the model does not know the outcome.
	h.reported[m.Write] = ""
	if m.Word == engine.WordRetry && m.Force {
		h.forced[m.Write] = h.forced[m.Write] || rec.State == ledger.Review
	}
	_, err := e.Resolve(ctx, "acme", h.id(m.Write), engine.Decision{Word: m.Word, Force: m.Force, By: "ada", Reason: "model"})
	after, _ := h.recorded(m.Write)
	if (errors.Is(err, engine.ErrNotWaiting) || errors.Is(err, engine.ErrBusy)) && rec.State == after.State && after.Directed != rec.Directed {
		h.fail("a refused decision directed write %d to %q", m.Write, after.Directed)
	}
}

// submit requests a write and checks the outcome against the model.
func (h *history) submit(m move, w intent.WriteIntent) {
	ctx, cancel := context.WithTimeout(context.Background(), m.Pass)
	defer cancel()
	e, life := h.process(m.Engine), h.lives[m.Engine]
	digest, err := w.Digest()
	if err != nil {
		h.fail("digest: %v", err)
	}
	out, err := e.Do(ctx, w)
	rec, there := h.recorded(m.Write)
	h.mu.Lock()
	if h.first[m.Write] == "" && there {
		h.first[m.Write] = rec.Digest
	}
	first := h.first[m.Write]
	h.mu.Unlock()
	switch {
	case life.isDead():
		return // no caller gets it
	case first != digest && !errors.Is(err, ledger.ErrDigestMismatch):
		h.fail("another digest under the key of write %d: %+v, %v", m.Write, out, err)
	case first != digest:
		return
	case err != nil:
		h.fail("write %d: %v", m.Write, err)
		return
	case !there:
		h.fail("write %d was answered with %s, and the ledger does not know it", m.Write, out.Status)
	}
	if out.Status == ledger.InProgress && ctx.Err() != nil {
		return // the caller gave up
	}
	h.checkOutcome(m.Write, out.Status)
}

// checkOutcome checks an outcome against the previous one. Only a recheck or a reviewer changes a
// final one.
func (h *history) checkOutcome(n int, s ledger.Status) {
	h.mu.Lock()
	last := h.reported[n]
	switch s {
	case ledger.StatusReview, ledger.StatusHeld, ledger.InProgress, ledger.Unverified:
	default:
		h.reported[n] = s
	}
	h.mu.Unlock()
	if last != "" && s != last && s != ledger.StatusReview {
		h.fail("write %d was reported as %s and is reported as %s now%s", n, last, s, h.life(h.id(n)))
	}
}

// pass lets time pass, with both processes at work.
func (h *history) pass(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var wg sync.WaitGroup
	for n := range modelEngines {
		e := h.process(n)
		wg.Go(func() { _ = runWorker(ctx, e, &engine.WorkOptions{Idle: h.idle}) }) // it returns nil
	}
	wg.Wait()
}
