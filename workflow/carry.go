package workflow

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

// desk is what a decision is made on: how everything stood when it was read.
type desk struct {
	now    time.Time
	stepID string
	wf     ledger.Paper
	flow   flow
	// paper and step are the step; known says whether it is there.
	paper ledger.Paper
	step  step
	known bool

	// What follows is there when a decision has asked for it. Other is the last
	// step but this one; rec is the write of the business operation.
	other     *ledger.Paper
	otherStep step
	rec       *ledger.Record
	looked    *looked
	blocked   *ledger.BlockedError
}

// need is what a decision cannot be made without.
type need int

const (
	needNothing need = iota
	needOther
	needRecord
)

// plan is a decision: what is to be filed in one step, or what must be known
// first.
type plan struct {
	need need
	look *looking
	// prepare is done outside any turn before the decision is made again.
	prepare func(context.Context)

	flow    *flow // changed
	step    *step // changed
	ended   []ending
	reserve *ledger.Reservation
	events  []ledger.Event // of the write of the business operation

	gate   GateResponse
	result ApprovalResult
	// refusal is told when all of this is filed: the call came too late for
	// anything else.
	refusal error
}

// ending is another step that a plan changes, and what becomes of its write.
type ending struct {
	paper   ledger.Paper
	changed bool
	rec     ledger.Record
	events  []ledger.Event
}

// decider makes a decision, and may be asked again. It changes nothing itself.
type decider func(desk) (plan, error)

// carry makes a decision and files it, and makes it anew when somebody else was
// quicker. It is the only place that reads, looks and files. It looks outside
// any turn and any transaction.
func (g *Gate) carry(ctx context.Context, tenant, workflowID, stepID string, decide decider) (plan, error) {
	var given desk
	var last error
	for try := range maxTries {
		p, err := g.once(ctx, tenant, workflowID, stepID, given, decide)
		given.blocked = nil
		switch {
		case err == nil && p.look != nil:
			if given.looked, err = g.look(ctx, *p.look); err != nil {
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

// once reads, decides and files, unless the decision needs a look first.
func (g *Gate) once(ctx context.Context, tenant, workflowID, stepID string, given desk, decide decider) (plan, error) {
	end, err := g.turns.take(ctx, tenant+"\x00"+stepName(workflowID, stepID))
	if err != nil {
		return plan{}, err
	}
	defer end()
	d, err := g.read(ctx, tenant, workflowID, stepID)
	if err != nil {
		return plan{}, err
	}
	d.looked, d.blocked = given.looked, given.blocked
	for {
		p, err := decide(d)
		switch {
		case err != nil || p.look != nil || p.prepare != nil:
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

func (g *Gate) read(ctx context.Context, tenant, workflowID, stepID string) (d desk, err error) {
	d.stepID = stepID
	if d.wf, err = g.store.Paper(ctx, tenant, kindWorkflow, workflowID); err != nil {
		if errors.Is(err, ledger.ErrNotFound) {
			err = &Error{Code: NotFound, Message: "Workflow not found"}
		}
		return d, err
	}
	d.now = d.wf.Now.Round(0).UTC()
	if d.flow, err = readFlow(d.wf); err != nil || stepID == "" {
		return d, err
	}
	d.paper, err = g.store.Paper(ctx, tenant, kindStep, stepName(workflowID, stepID))
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		d.paper = ledger.Paper{Tenant: tenant, Kind: kindStep, ID: stepName(workflowID, stepID), Binder: workflowID}
		return d, nil
	case err != nil:
		return d, err
	}
	d.known = true
	if d.paper.Now.After(d.now) {
		d.now = d.paper.Now.Round(0).UTC()
	}
	d.step, err = readStep(d.paper)
	return d, err
}

// supply gets what a decision asks for. What is not there is given as nothing,
// so that it is not asked for again.
func (g *Gate) supply(ctx context.Context, d *desk, n need) (err error) {
	if n == needRecord {
		rec, err := g.store.Get(ctx, d.wf.Tenant, d.step.Operation)
		if errors.Is(err, ledger.ErrNotFound) {
			rec, err = ledger.Record{State: ledger.Settled}, nil // pruned: it was settled
		}
		d.rec = &rec
		return err
	}
	other, err := g.store.Paper(ctx, d.wf.Tenant, kindStep, stepName(d.wf.ID, d.flow.other(d.stepID)))
	if err != nil {
		return err
	}
	d.other = &other
	d.otherStep, err = readStep(other)
	return err
}

// file does what was decided, in one step of the ledger. The workflow must stand
// as it was read, so that nothing is granted in one that has ended meanwhile.
func (g *Gate) file(ctx context.Context, d desk, p plan) error {
	p = p.traced(ctx, d)
	f := ledger.Filing{Reserve: p.reserve}
	if p.flow != nil {
		f.Papers = append(f.Papers, p.flow.paper(d.wf))
	} else {
		f.Unchanged = append(f.Unchanged, d.wf)
	}
	if p.step != nil {
		paper := p.step.paper(d.paper)
		if err := size("the step with all that is kept of it", len(paper.Body), maxBody); err != nil {
			return err
		}
		f.Papers = append(f.Papers, paper)
	}
	if d.other != nil && !slices.ContainsFunc(p.ended, func(e ending) bool { return e.paper.ID == d.other.ID }) {
		f.Unchanged = append(f.Unchanged, *d.other)
	}
	if len(p.events) > 0 {
		f.Append = append(f.Append, ledger.Appending{ID: d.rec.ID, Fence: d.rec.Fence, Events: p.events})
	}
	for _, e := range p.ended {
		if e.changed {
			f.Papers = append(f.Papers, e.paper)
		} else {
			f.Unchanged = append(f.Unchanged, e.paper)
		}
		if len(e.events) > 0 {
			f.Append = append(f.Append, ledger.Appending{ID: e.rec.ID, Fence: e.rec.Fence, Events: e.events})
		}
	}
	if len(f.Papers) == 0 {
		return nil // nothing to say
	}
	_, err := g.store.File(ctx, f)
	return err
}

// rest waits a moment, longer with each try.
func rest(ctx context.Context, try int) error {
	pause.For(ctx, rand.N(min(time.Millisecond<<min(try, 10), pauseMost)))
	return ctx.Err()
}
