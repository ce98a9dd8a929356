package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// sagaID is the saga of a run, where it has one: a step about the record, and
// another at a destination that may refuse it, so that the saga goes back.
const sagaID = "saga"

// The ways in which a caller of the gate fares that was allowed to carry a step out.
const (
	completes  = "completes"
	diesBefore = "dies before its call"
	diesAfter  = "dies after its call"
)

// workflows are the programs above single writes, in one lifetime of one worker.
type workflows struct {
	sagas *saga.Runner
	gate  *gate.Gate
}

// store is the ledger as those programs use it.
type store struct {
	ledger.Documents
	*process
	about ledger.ID // the write that its batches count as calls of
}

func (d store) Commit(ctx context.Context, f ledger.Batch) (done ledger.Committed, err error) {
	err = d.ledgerCall(ctx, "File", d.about, func(ctx context.Context) error {
		done, err = d.Documents.Commit(ctx, f)
		return err
	})
	return done, err
}

// drawWorkflows draws a step of a saga, a step of the gate, and clocks that differ. It
// draws from its own source, so that it shifts nothing that was drawn before.
func (p *plan) drawWorkflows(r *rand.Rand) {
	p.skews = make([]time.Duration, p.workers)
	if r.IntN(4) == 0 {
		most := []time.Duration{2 * time.Second, 20 * time.Second, 2 * time.Minute}[r.IntN(3)]
		for i := range p.skews {
			p.skews[i] = time.Duration(r.Int64N(int64(most)))
		}
	}
	n := r.IntN(len(p.writes))
	w := &p.writes[n]
	switch r.IntN(8) {
	case 0:
		if w.intent.Write == intent.Create && p.class.irreversible {
			return
		}
		w.saga, w.refused = true, r.IntN(2) == 0
		w.queue, w.undo = false, 0
		w.intent.Workflow, w.intent.Reversibility = sagaID, intent.Compensable
	case 1:
		w.queue, w.undo, w.crowded = false, 0, false
		w.intent.Workflow, w.intent.Deadline, w.intent.Reversibility, w.intent.OnMismatch = "", time.Time{}, "", ""
		for range 1 + r.IntN(3) {
			w.gate = append(w.gate, []string{completes, diesBefore, diesAfter}[r.IntN(3)])
		}
		w.gate = append(w.gate, completes)
	default:
		return
	}
	if r.IntN(2) == 0 {
		p.stops = append(p.stops, stop{worker: w.worker, write: n, op: "File", nth: r.IntN(6),
			how: []string{"die before", "die after", "stall before", "stall after"}[r.IntN(4)], stall: []time.Duration{5 * time.Second, 40 * time.Second, 2 * time.Minute}[r.IntN(3)]})
	}
}

// newWorkflows gives one lifetime of a worker its saga runner and its gate.
func (r *run) newWorkflows(p *process, e *engine.Engine) workflows {
	i := slices.IndexFunc(r.plan.writes, func(w write) bool { return w.saga || len(w.gate) > 0 })
	if i < 0 {
		return workflows{}
	}
	d := store{Documents: r.books[p.worker], process: p, about: idOf(r.plan.writes[i].intent)}
	return workflows{sagas: saga.New(d, e, nil), gate: gate.New(d, &gate.Options{Reader: e, Logger: slog.New(slog.DiscardHandler)})}
}

// sagaOf is the saga that a write is a step of.
func sagaOf(w write) saga.Plan {
	other := intent.WriteIntent{Tool: "tills.create", Destination: "tills", Kind: orders.Kind, Write: intent.Create, Reversibility: intent.Pivot,
		Key: intent.Fields{"order_id": "T-1"}, Expect: intent.Fields{"amount_cents": number(1)}}
	return saga.Plan{Tenant: "acme", ID: sagaID, Steps: []saga.Step{{Name: w.intent.Step, Intent: w.intent}, {Name: "till", Intent: other}}}
}

// carry continues the saga of a write, whatever worker began it.
func (r *run) carry(w write, worker int, within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	sagas := r.workflows(worker).sagas
	s, err := sagas.Begin(ctx, sagaOf(w))
	if err == nil && !s.Over() {
		s, err = sagas.Run(ctx, "acme", sagaID)
	}
	now := fmt.Sprintf("%s: %s %v", s.State, s.Reason, err)
	r.mu.Lock()
	same := now == r.saga
	r.saga = now
	r.mu.Unlock()
	if !same {
		r.logf("the saga at worker %d: %s", worker, now)
	}
}

// checkSaga: a saga ends, or a reviewer has it, and its reported step is true.
func (r *run) checkSaga(w write) {
	ctx := context.Background()
	s, err := saga.New(r.books[0], r.engine(0), nil).Get(ctx, "acme", sagaID)
	if err != nil {
		r.fail("open: the saga: %v", err)
		return
	}
	step, err := r.books[0].Get(ctx, "acme", idOf(w.intent))
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		r.fail("open: the saga's step: %v", err)
		return
	}
	waits := slices.ContainsFunc(slices.Collect(maps.Values(r.final)), func(rec ledger.Record) bool { // checkOpen holds what for
		return rec.State != ledger.Settled && (rec.Workflow == sagaID || rec.ID == step.Child)
	})
	verified := step.State == ledger.Settled && step.Settlement == ledger.Verified
	switch {
	case !s.Over() && s.State != saga.Review && !waits:
		r.fail("open: the saga is %s for ever: %s", s.State, s.Reason)
	case s.State == saga.Done && !verified && step.State != ledger.Review: // a recheck may have found something since
		r.fail("saga: it is done, and its step is %s", step.Phase())
	case s.State == saga.Undone && verified && step.Sends > 0: // else there is nothing to undo
		r.fail("saga: it is undone, and its step is %s", step.Phase())
	}
}

// caller executes a step itself, as often as the gate allows, until it could complete it.
func (r *run) caller(w write, worker int) {
	who := gate.Caller{Tenant: "acme", Name: "caller"}
	members := map[string]any{"destination": w.intent.Destination, "kind": w.intent.Kind, "key": w.intent.Key, "write": w.intent.Write}
	if w.intent.Write != intent.Delete {
		members["expect"] = w.intent.Expect
	}
	body, err := json.Marshal(members)
	if err != nil {
		r.fail("gate: %v", err)
		return
	}
	ask := gate.GateRequest{StepType: "connector_call", IdempotencyKey: "gate", ToolContext: &gate.ToolContext{ToolName: w.intent.Tool}, Intent: body}
	flow := ""
	granted, done := 0, time.Time{}
	var lost, checkedAt time.Time // when a call with a lost answer began, and the time of the last finding
	for again := range 12 {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		steps := r.workflows(worker).gate
		if flow == "" {
			made, err := steps.Create(ctx, who, gate.CreateRequest{WorkflowName: "gated"})
			if err == nil {
				flow = made.WorkflowID
				known := w.intent
				known.Workflow = flow
				r.mu.Lock()
				r.alias[idOf(known)] = idOf(w.intent)
				r.mu.Unlock()
			}
		}
		began := time.Now()
		got, err := steps.Gate(ctx, who, flow, w.intent.Step, ask)
		cancel()
		v := got.RetryContext.Verification
		if err == nil && v != nil && !v.CheckedAt.Equal(checkedAt) { // a stored finding has its time
			if !lost.IsZero() {
				began = lost // the gate may have read then
			}
			r.checkGate(w, v, began)
			checkedAt, lost = v.CheckedAt, time.Time{}
		}
		if err != nil && lost.IsZero() {
			lost = began
		}
		if err != nil || !got.LeaseGranted && (v == nil || v.Effect != "present") {
			r.logf("the gate at worker %d: %s %s %v", worker, got.Decision, got.Reason, err)
			time.Sleep(max(time.Duration(got.RetryAfterSeconds)*time.Second, time.Second<<again))
			continue
		}
		if got.LeaseGranted {
			if !done.IsZero() && r.always(w.intent, done) {
				r.fail("gate: %s was granted again, although its effect is there since %v", w.intent.Step, done.Sub(epoch))
			}
			how := w.gate[min(granted, len(w.gate)-1)]
			granted++
			r.logf("the gate at worker %d grants %s: the caller %s", worker, w.intent.Step, how)
			if how == diesBefore {
				continue
			}
			time.Sleep(r.plan.network)
			if r.callerWrites(w.intent) {
				done = time.Now()
			}
			if how == diesAfter {
				continue
			}
		}
		ctx, cancel = context.WithTimeout(context.Background(), 2*time.Minute)
		if lost.IsZero() {
			lost = time.Now()
		}
		_, err = r.workflows(worker).gate.CompleteStep(ctx, who, flow, w.intent.Step, gate.CompleteRequest{IdempotencyKey: "gate", Fence: fence(got)})
		cancel()
		r.logf("the caller completes %s: %v", w.intent.Step, err)
		if err == nil {
			return
		}
	}
}

func fence(g gate.GateResponse) int64 {
	if g.Lease == nil {
		return 0
	}
	return g.Fence
}

// callerWrites is the caller's own call. It reports whether it was done.
func (r *run) callerWrites(w intent.WriteIntent) bool {
	r.mu.Lock()
	r.acted = append(r.acted, time.Now())
	r.mu.Unlock()
	there := r.world.Records("S-1")
	fields := intent.Fields{"order_id": "S-1"}
	for name, v := range w.Expect {
		fields[name] = v
	}
	err := errors.New("404 there is no such order")
	switch {
	case w.Write == intent.Create, w.Write == intent.Upsert && len(there) == 0:
		_, err = r.world.Seed(fields, "")
	case len(there) == 0:
	case w.Write == intent.Delete:
		err = r.world.Remove(there[0].ID)
	default:
		_, err = r.world.Edit(there[0].ID, w.Expect)
	}
	r.logf("the caller's call: %s: %v", w.Write, err)
	return err == nil
}

// always reports whether the record was as declared at each moment since.
func (r *run) always(w intent.WriteIntent, since time.Time) bool {
	effects := r.world.Effects()
	for _, e := range effects {
		if !e.At.Before(since) && !r.exact(w, false, effects, e.At) {
			return false
		}
	}
	return r.exact(w, false, effects, since)
}

// checkGate: the gate's report of a step's effect was true when it read.
func (r *run) checkGate(w write, v *gate.Verification, began time.Time) {
	if v == nil || v.Effect == "unknown" {
		return
	}
	effects, since := r.world.Effects(), began.Add(-r.lag()-1)
	moments := []time.Time{time.Now(), since}
	for _, e := range effects {
		if e.At.After(since) {
			moments = append(moments, e.At)
		}
	}
	r.logf("the gate says of %s: %s: %s", w.intent.Step, v.Effect, v.Reason)
	present := v.Effect == "present"
	if !slices.ContainsFunc(moments, func(at time.Time) bool { return r.exact(w.intent, false, effects, at) == present }) {
		r.fail("gate: it says that the effect of %s is %s, and it was not so since %v", w.intent.Step, v.Effect, since.Sub(epoch))
	}
}

func (r *run) workflows(worker int) workflows {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flows[worker]
}

// named reports whether a write is of the plan, or undoes one of it.
func (r *run) named(id ledger.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[id] != ""
}

// known is the write of the plan with an identity of the ledger.
func (r *run) known(id ledger.ID) ledger.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of, ok := r.alias[id]; ok {
		return of
	}
	return id
}

// tills is the other destination of sagas.
func tills(refused bool) (*orders.World, error) {
	world, err := orders.New(orders.Plain.Options())
	if err == nil && refused {
		err = world.Set(orders.Fault{Kind: orders.Refused, How: "422", Times: 1000})
	}
	if err != nil {
		return nil, fmt.Errorf("tills: %w", err)
	}
	return world, nil
}
