package gate

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxTries bounds how often a decision is made again because another process committed first.
	// Within a process a keyed mutex serialises the gates of a step.
	maxTries = 100
	// pauseMost is the longest pause between two tries: a few commits.
	pauseMost = 40 * time.Millisecond
)

// documents is what a decision is based on: the state when it was read.
type documents struct {
	now    time.Time
	stepID string
	wf     ledger.Document
	flow   flow
	// document and step are the step. known reports whether it exists.
	document ledger.Document
	step     step
	known    bool

	// The following is set once a decision has asked for it. Other is the last step but this one;
	// rec is the write of the business operation.
	other     *ledger.Document
	otherStep step
	rec       *ledger.Record
	readBack  *readBack
	blocked   *ledger.BlockedError
}

// need is input that a decision requires.
type need int

const (
	needNothing need = iota
	needOther
	needRecord
)

// plan is a decision: what to commit in one transaction, or what must be read first.
type plan struct {
	need need
	read *readRequest
	// prepare runs outside the keyed mutex before the decision is made again.
	prepare func(context.Context)

	flow    *flow // changed
	step    *step // changed
	ended   []ending
	reserve *ledger.Reservation
	events  []ledger.Event // of the write of the business operation

	gate   GateResponse
	result ApprovalResult
	// refusal is returned once all of this is committed: the call came too late for anything
	// else.
	refusal error
}

// ending is another step that a plan changes, and the events of its write.
type ending struct {
	document ledger.Document
	changed  bool
	rec      ledger.Record
	events   []ledger.Event
}

// decider makes a decision. It may be called again, and changes nothing itself.
type decider func(documents) (plan, error)

// carry makes a decision and commits it, and makes it again when another actor committed first.
// It is the only place that reads documents, reads destinations and commits. It reads
// destinations outside any mutex and any transaction.
func (g *Gate) carry(ctx context.Context, tenant, workflowID, stepID string, decide decider) (plan, error) {
	var given documents
	var last error
	for try := range maxTries {
		p, err := g.once(ctx, tenant, workflowID, stepID, given, decide)
		given.blocked = nil
		switch {
		case err == nil && p.read != nil:
			if given.readBack, err = g.readShared(ctx, *p.read); err != nil {
				return plan{}, err
			}
		case err == nil && p.prepare != nil:
			p.prepare(ctx)
		case err == nil:
			return p, p.refusal
		case errors.As(err, &given.blocked):
			if g.lapsePrior(ctx, given.blocked.Prior) {
				given.blocked = nil
			}
		case errors.Is(err, ledger.ErrStale), errors.Is(err, ledger.ErrFenced), errors.Is(err, ledger.ErrIllegalMove):
			last = err
			if err := rest(ctx, try); err != nil {
				return plan{}, err
			}
		default:
			return plan{}, failed(err)
		}
	}
	return plan{}, &Error{Code: Internal, Message: "too many others changed this at once; nothing was recorded, ask again", Err: last}
}

// once reads, decides and commits, unless the decision first needs a read of the destination.
func (g *Gate) once(ctx context.Context, tenant, workflowID, stepID string, given documents, decide decider) (plan, error) {
	end, err := g.locks.take(ctx, tenant+"\x00"+stepName(workflowID, stepID))
	if err != nil {
		return plan{}, err
	}
	defer end()
	d, err := g.read(ctx, tenant, workflowID, stepID)
	if err != nil {
		return plan{}, err
	}
	d.readBack, d.blocked = given.readBack, given.blocked
	for {
		p, err := decide(d)
		switch {
		case err != nil || p.read != nil || p.prepare != nil:
			return p, err
		case p.need != needNothing:
			if err := g.supply(ctx, &d, p.need); err != nil {
				return plan{}, err
			}
		default:
			return p, g.file(ctx, d, p)
		}
	}
}

func (g *Gate) read(ctx context.Context, tenant, workflowID, stepID string) (d documents, err error) {
	d.stepID = stepID
	if d.wf, err = g.store.Document(ctx, tenant, kindWorkflow, workflowID); err != nil {
		if errors.Is(err, ledger.ErrNotFound) {
			err = &Error{Code: NotFound, Message: "Workflow not found"}
		}
		return d, err
	}
	d.now = d.wf.Now.Round(0).UTC()
	if d.flow, err = readFlow(d.wf); err != nil || stepID == "" {
		return d, err
	}
	d.document, err = g.store.Document(ctx, tenant, kindStep, stepName(workflowID, stepID))
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		d.document = ledger.Document{Tenant: tenant, Kind: kindStep, ID: stepName(workflowID, stepID), Collection: workflowID}
		return d, nil
	case err != nil:
		return d, err
	}
	d.known = true
	if d.document.Now.After(d.now) {
		d.now = d.document.Now.Round(0).UTC()
	}
	d.step, err = readStep(d.document)
	return d, err
}

// supply gets what a decision asks for. Missing items are given as empty, so that they are not
// requested again.
func (g *Gate) supply(ctx context.Context, d *documents, n need) (err error) {
	if n == needRecord {
		rec, err := g.store.Get(ctx, d.wf.Tenant, d.step.Operation)
		if errors.Is(err, ledger.ErrNotFound) {
			rec, err = ledger.Record{State: ledger.Settled}, nil // pruned: it was settled
		}
		d.rec = &rec
		return err
	}
	other, err := g.store.Document(ctx, d.wf.Tenant, kindStep, stepName(d.wf.ID, d.flow.other(d.stepID)))
	if err != nil {
		return err
	}
	d.other = &other
	d.otherStep, err = readStep(other)
	return err
}

// file commits the decision in one ledger transaction. The workflow must be unchanged since it
// was read, so that nothing is granted in one that has ended.
func (g *Gate) file(ctx context.Context, d documents, p plan) error {
	p = p.traced(ctx, d)
	f := ledger.Batch{Reserve: p.reserve}
	if p.flow != nil {
		f.Documents = append(f.Documents, p.flow.document(d.wf))
	} else {
		f.Unchanged = append(f.Unchanged, d.wf)
	}
	if p.step != nil {
		document := p.step.document(d.document)
		if err := size("the step with all that is kept of it", len(document.Body), maxBody); err != nil {
			return err
		}
		f.Documents = append(f.Documents, document)
	}
	if d.other != nil && !slices.ContainsFunc(p.ended, func(e ending) bool { return e.document.ID == d.other.ID }) {
		f.Unchanged = append(f.Unchanged, *d.other)
	}
	if len(p.events) > 0 {
		f.Append = append(f.Append, ledger.Appending{ID: d.rec.ID, Fence: d.rec.Fence, Events: p.events})
	}
	for _, e := range p.ended {
		if e.changed {
			f.Documents = append(f.Documents, e.document)
		} else {
			f.Unchanged = append(f.Unchanged, e.document)
		}
		if len(e.events) > 0 {
			f.Append = append(f.Append, ledger.Appending{ID: e.rec.ID, Fence: e.rec.Fence, Events: e.events})
		}
	}
	if len(f.Documents) == 0 {
		return nil // nothing to record
	}
	_, err := g.store.Commit(ctx, f)
	return err
}

// rest pauses, longer with each try.
func rest(ctx context.Context, try int) error {
	pause.For(ctx, rand.N(min(time.Millisecond<<min(try, 10), pauseMost)))
	return ctx.Err()
}
