package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// Word is what a person can say about a write.
type Word string

// The words. Approve and deny are for held writes, the others for writes in
// review.
const (
	WordAccept     Word = "accept"     // take responsibility for it as it is
	WordRetry      Word = "retry"      // send again, if that is harmless
	WordCompensate Word = "compensate" // undo it
	WordAbandon    Word = "abandon"    // give it up
	WordApprove    Word = "approve"    // let it go
	WordDeny       Word = "deny"       // do not let it go
)

// Decision is what a person decided. By and Reason are required.
type Decision struct {
	Word   Word
	By     string
	Reason string
	// Force, with retry, vouches that the effect is not there, where the
	// engine cannot show it. The destination is read once more first; nothing
	// is sent when that read shows something. Default false.
	Force bool
	// Digest is that of what the person saw. Another than the write's is refused.
	// Default not said.
	Digest string
	// Seq is the number of the last event that the person saw. A write to which
	// something has happened since is refused with [ErrChanged]. Default not said.
	Seq int64
}

// Errors of Resolve.
var (
	// ErrChanged: something has happened to the write since the person looked.
	ErrChanged = errors.New("something has happened to the write since it was looked at")
	// ErrNotWaiting: the write is not waiting for such a word.
	ErrNotWaiting = errors.New("the write does not wait for this decision")
	// ErrBusy: a worker holds the write; try again when its lease has ended.
	ErrBusy = errors.New("a worker holds the write")
)

// Resolve carries out a person's decision and waits for what follows from it.
// When ctx ends, the decision is in the ledger all the same, or an error says
// why not. A write that was approved while another one of its line is open is
// in progress: it waits its turn. A person is a slow policy: the rules about second sends hold, but
// for what Force says. It fails with [ledger.ErrNotFound], [ErrNotWaiting],
// [ErrChanged] or [ErrBusy],
// and then nothing has changed.
func (e *Engine) Resolve(ctx context.Context, tenant string, id ledger.ID, d Decision) (Outcome, error) {
	if err := mayDecide(ctx, d.By, d.Reason); err != nil {
		return Outcome{}, err
	}
	asking := context.WithoutCancel(ctx) // a short wait is no reason not to decide
	rec, err := e.ledger.Get(asking, tenant, id)
	if err != nil {
		return Outcome{}, err
	}
	if err := cmp.Or(d.current(rec), d.refused(rec)); err != nil {
		return Outcome{}, err
	}
	if err := e.undoingOpen(asking, rec, d); err != nil {
		return Outcome{}, err
	}
	f, began, err := e.board(id, rec.Digest, false)
	if err != nil {
		return Outcome{}, err
	}
	if !began {
		return Outcome{}, fmt.Errorf("%w: %s", ErrBusy, id)
	}
	l := e.lifeFor(ctx)
	go func() { e.land(id, f, guarded(id, func() error { return e.resolve(tenant, id, d, f, l) })) }()
	select {
	case <-f.done:
		if !f.failed() && f.last.Behind != "" {
			return outcomeOf(f.last, true), nil
		}
	case <-ctx.Done():
	}
	return e.wait(ctx, f, rec, true)
}

// refused is why a decision about a write as it stands is not taken, nil where
// nothing about the write speaks against it.
func (d Decision) refused(rec ledger.Record) error { return cmp.Or(d.fits(rec), d.allowed(rec)) }

// current refuses a decision about what was seen before something happened.
func (d Decision) current(rec ledger.Record) error {
	if d.Seq != 0 && d.Seq != rec.Seq {
		return fmt.Errorf("%w: the decision is about %s as of event %d, and there are %d", ErrChanged, rec.ID, d.Seq, rec.Seq)
	}
	return nil
}

// goesOn reports whether the write goes on after the decision, so that its
// destination must be known; what ends it needs none.
func (d Decision) goesOn() bool { return d.event(ledger.Record{}).Kind != ledger.EvSettled }

// fits reports whether the write waits for this word.
func (d Decision) fits(rec ledger.Record) error {
	state := ledger.Review
	switch d.Word {
	case WordApprove, WordDeny:
		state = ledger.Held
	case WordAccept, WordRetry, WordCompensate, WordAbandon:
	default:
		return fmt.Errorf("%w: unknown word %q; say accept, retry, compensate, abandon, approve or deny", ErrNotWaiting, d.Word)
	}
	if rec.Entrusted {
		if err := d.fitsEntrusted(rec); err != nil {
			return err
		}
	}
	if rec.State != state {
		return fmt.Errorf("%w: %s is %s; %q is for writes that are %s", ErrNotWaiting, rec.ID, rec.Phase(), d.Word, state)
	}
	return nil
}

// fitsEntrusted reports whether the word is for a write that its caller makes
// itself: nothing of it is let go, sent or undone from here.
func (d Decision) fitsEntrusted(rec ledger.Record) error {
	step := fmt.Sprintf("step %q of workflow %q", rec.Step, rec.Workflow)
	switch d.Word {
	case WordApprove, WordDeny:
		return fmt.Errorf("%w: %s is what %s does itself; approve or reject that step at the gate", ErrNotWaiting, rec.ID, step)
	case WordRetry, WordCompensate:
		return fmt.Errorf("%w: %s is what %s does itself; it is never sent or undone from here", ErrNotWaiting, rec.ID, step)
	}
	return nil
}

// undoingOpen refuses another send, or another undoing, while one that was
// begun is open: it could undo what the new send makes.
func (e *Engine) undoingOpen(ctx context.Context, rec ledger.Record, d Decision) error {
	if !d.meetsUndoing() {
		return nil
	}
	child, err := e.ledger.Get(ctx, rec.Tenant, undoingID(rec))
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return d.beside(child)
}

// meetsUndoing reports whether the decision could come across an undoing.
func (d Decision) meetsUndoing() bool { return d.Word == WordRetry || d.Word == WordCompensate }

// beside refuses a decision that an undoing stands in the way of.
func (d Decision) beside(undoing ledger.Record) error {
	if !d.meetsUndoing() || undoing.State == ledger.Settled {
		return nil
	}
	return fmt.Errorf("%w: its undoing %s is %s; decide about that first", ErrNotWaiting, undoing.ID, undoing.Phase())
}

func (e *Engine) resolve(tenant string, id ledger.ID, d Decision, f *flight, l life) error {
	rec, asked, err := e.take(tenant, id)
	if err == nil {
		err = d.current(rec) // before what time does to it here
	}
	if err != nil {
		return err
	}
	by := l.from
	l.from = trace.SpanContext{} // the write has a trace of its own
	l, s := e.stretch(l, &rec, stageDecision, by)
	defer s.end()
	return s.done(e.resolveIn(rec, asked, d, f, l, by))
}

// resolveIn is resolve in a stretch of work.
func (e *Engine) resolveIn(rec ledger.Record, asked time.Time, d Decision, f *flight, l life, by trace.SpanContext) (err error) {
	tenant, id := rec.Tenant, rec.ID
	if lapsed(rec) {
		if err := e.lapse(rec, asked, l); err != nil {
			return err
		}
		if rec, asked, err = e.take(tenant, id); err != nil {
			return err
		}
		if rec.Settlement == ledger.Expired {
			return fmt.Errorf("write %s: %w: %s", id, ErrExpired, rec.Reason)
		}
	}
	if err := d.refused(rec); err != nil {
		return err
	}
	t, err := e.newTask(rec, asked, l)
	if err != nil && d.goesOn() {
		return e.unworkable(rec, err)
	}
	if err != nil {
		t = &task{e: e, life: l}
		t.adopt(rec, asked)
	}
	defer t.unsent()
	ev := d.event(rec)
	ev.Trace = causedBy(by, rec)
	err = t.commit(ev)
	switch {
	case errors.Is(err, ErrExpired): // while it was on its way to the ledger
		return cmp.Or(e.lapse(t.base, asked, l), fmt.Errorf("write %s: %w", id, ErrExpired))
	case errors.Is(err, ledger.ErrFenced): // to be told, unlike work that another worker carries on
		return fmt.Errorf("%w: %s was taken over before the decision was recorded", ErrBusy, id)
	case err != nil:
		return err
	}
	f.keep()
	e.wakeSaga(t.rec)
	if !ended(t.rec) {
		err = t.run()
	}
	if err == nil {
		f.last = t.rec
	}
	return err
}

// wakeSaga makes the saga of a write due, in whichever process it runs: a reviewer
// has decided about the write. Where that fails, or this process dies before it, the
// saga finds out by itself within minutes.
func (e *Engine) wakeSaga(rec ledger.Record) {
	papers, ok := e.ledger.(ledger.Papers)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), ledgerTimeout)
	defer cancel()
	err := ledger.ErrStale
	for n := 0; errors.Is(err, ledger.ErrStale) && n < wakeTries; n++ {
		err = wake(ctx, papers, rec)
	}
	if err != nil {
		e.opts.Logger.Warn("the saga of a write continues within minutes, and not at once after the decision", "write", rec.ID, "tenant", rec.Tenant, "error", err)
	}
}

// wake files the paper also where it is due already: a worker may have read the write
// before the decision, and would file that the saga rests.
func wake(ctx context.Context, papers ledger.Papers, rec ledger.Record) error {
	p, err := papers.Paper(ctx, rec.Tenant, ledger.SagaKind, rec.Workflow)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && p.Due.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	if p.Due.After(p.Now) {
		p.Due = p.Now
	}
	_, err = papers.File(ctx, ledger.Filing{Papers: []ledger.Paper{p}})
	return err
}

// take lends a write to this process, due or not.
func (e *Engine) take(tenant string, id ledger.ID) (ledger.Record, time.Time, error) {
	rec, err := e.ledger.Get(e.ctx, tenant, id)
	if err != nil {
		return rec, time.Time{}, err
	}
	claimed, asked, err := e.lent(e.ctx, ledger.Claim{Owner: e.opts.Owner, LeaseFor: e.leaseFor(rec), Tenant: tenant, ID: id, Early: true})
	if err != nil {
		return rec, asked, err
	}
	if len(claimed) == 0 {
		return rec, asked, fmt.Errorf("%w: %s, until %s", ErrBusy, id, rec.LeaseUntil.Format(time.RFC3339))
	}
	return claimed[0], asked, nil
}

// event is the decision as an event.
func (d Decision) event(rec ledger.Record) ledger.Event {
	ev := ledger.Event{By: d.By, Reason: d.Reason, Rule: "person", Digest: d.Digest}
	switch d.Word {
	case WordAccept:
		ev.Kind, ev.Settlement = ledger.EvSettled, ledger.Accepted
	case WordAbandon:
		ev.Kind, ev.Settlement = ledger.EvSettled, ledger.Abandoned
	case WordDeny:
		ev.Kind, ev.Settlement = ledger.EvSettled, ledger.Denied
	case WordApprove:
		ev.Kind = d.approval(rec)
	case WordCompensate:
		ev.Kind, ev.Directed = ledger.EvDirected, policies.DirectCompensate
	case WordRetry:
		ev.Kind, ev.Directed = ledger.EvDirected, policies.DirectRetry
		if d.Force {
			ev.Directed = policies.DirectForce
		}
	}
	return ev
}
