package simulation

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// process is one lifetime of one worker: its calls of the ledger and of the destination, each of
// which takes time and can be its last.
type process struct {
	ledger.Ledger
	connectors.Connector
	run    *run
	worker int
	life   int

	mu    sync.Mutex
	dead  bool
	calls map[string]int
	reads map[string]time.Time // when the last read of a write was begun that succeeded, by stamp
}

var errDead = errors.New("this process is dead")

// latency follows from the seed, the process and the call, and from nothing
// else: goroutines that run at the same moment do not shift it.
func (p *process) latency(call string, nth int, leg string, longest time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, p.run.plan.seed, p.worker, p.life, call, nth, leg)
	n := h.Sum64()
	n ^= n >> 29
	n *= 0xbf58476d1ce4e5b9
	n ^= n >> 32
	return time.Duration(n%uint64(longest)) + 1
}

// call makes one call concerning a write, which do does. It takes time before and after, and ends
// there if the caller gives up or dies.
func (p *process) call(ctx context.Context, op string, id ledger.ID, longest time.Duration, do func(ctx context.Context) error) error {
	id = p.run.known(id)
	name := op
	if p.run.named(id) { // the gate draws names by chance
		name += " " + string(id)
	}
	p.mu.Lock()
	nth := p.calls[name]
	p.calls[name]++
	p.mu.Unlock()
	if p.isDead() {
		return errDead
	}
	how, stall := p.run.stopAt(p.worker, op, id, nth)
	switch how {
	case "die before":
		p.die(op, id)
		return errDead
	case "die landing":
		p.die(op, id)
		if op == "Write" {
			time.AfterFunc(15*time.Second, func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
				defer cancel()
				_ = do(ctx) // the answer is lost
			})
		}
		return errDead
	case "stall before":
		p.run.logf("worker %d stops for %v before %s", p.worker, stall, op)
		time.Sleep(stall)
	}
	if err := pause(ctx, p.latency(name, nth, "there", longest)); err != nil {
		return err
	}
	if p.isDead() {
		return errDead
	}
	err := do(ctx)
	p.run.served(op, id)
	switch how {
	case "die after":
		p.die(op, id)
		return errDead
	case "stall after":
		p.run.logf("worker %d stops for %v after %s", p.worker, stall, op)
		_ = pause(ctx, p.latency(name, nth, "back", longest))
		time.Sleep(stall)
		return err // the answer had arrived
	}
	if late := pause(ctx, p.latency(name, nth, "back", longest)); late != nil && err == nil {
		return late
	}
	if p.isDead() {
		return errDead
	}
	return err
}

// ledgerCall is a call of the ledger, which takes it as coming from this worker's
// machine.
func (p *process) ledgerCall(ctx context.Context, op string, id ledger.ID, do func(ctx context.Context) error) error {
	return p.call(ctx, op, id, p.run.plan.ledger, func(ctx context.Context) error {
		p.run.ledgerMu.Lock()
		defer p.run.ledgerMu.Unlock()
		p.run.setCaller(p.worker)
		return do(ctx)
	})
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

func (p *process) die(op string, id ledger.ID) {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.run.logf("worker %d dies at %s of %s", p.worker, op, p.run.nameOf(id))
	p.run.died(p.worker)
}

// Woken signals nothing: each worker finds its work at its next read, as after a lost signal.
func (p *process) Woken(context.Context) <-chan struct{} { return nil }

func (p *process) Reserve(ctx context.Context, r ledger.Reservation) (rec ledger.Record, fresh bool, err error) {
	err = p.ledgerCall(ctx, "Reserve", r.Record.ID, func(ctx context.Context) error {
		rec, fresh, err = p.Ledger.Reserve(ctx, r)
		if err == nil && fresh {
			p.run.committed(p, rec, r.Events)
		}
		return err
	})
	return rec, fresh, err
}

func (p *process) Claim(ctx context.Context, c ledger.Claim) (lent []ledger.Record, err error) {
	err = p.ledgerCall(ctx, "Claim", "", func(ctx context.Context) error {
		lent, err = p.Ledger.Claim(ctx, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return lent, nil
}

func (p *process) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (rec ledger.Record, err error) {
	err = p.ledgerCall(ctx, "Append", id, func(ctx context.Context) error {
		rec, err = p.Ledger.Append(ctx, id, fence, events...)
		if err == nil {
			p.run.committed(p, rec, events)
		}
		return err
	})
	return rec, err
}

func (p *process) Get(ctx context.Context, tenant string, id ledger.ID) (rec ledger.Record, err error) {
	err = p.ledgerCall(ctx, "Get", id, func(ctx context.Context) error {
		rec, err = p.Ledger.Get(ctx, tenant, id)
		return err
	})
	return rec, err
}

func (p *process) Write(ctx context.Context, r connectors.Request) (receipt connectors.Receipt, err error) {
	stamp := r.Intent.Stamp()
	r.Stamp = stamp // the destination's history names the author of each change; what it keeps of it is its own affair
	p.mu.Lock()
	s := &send{stamp: stamp, worker: p.worker, begun: time.Now(), clock: p.run.clock(p.worker), attempt: r.Attempt, read: p.reads[stamp]}
	p.mu.Unlock()
	p.run.sending(s, r.Intent)
	err = p.call(ctx, "Write", idOf(r.Intent), p.run.plan.network, func(ctx context.Context) error {
		p.run.arrived(s)
		receipt, err = p.Connector.Write(ctx, r)
		p.run.answered(s, receipt, err)
		return err
	})
	return receipt, err
}

func (p *process) Read(ctx context.Context, q connectors.Query) (obs connectors.Observation, err error) {
	var began time.Time
	err = p.call(ctx, "Read", idOf(q.Intent), p.run.plan.network, func(ctx context.Context) error {
		began = time.Now()
		obs, err = p.Connector.Read(ctx, q)
		p.run.logf("worker %d reads for %s: %d records, %v", p.worker, p.run.nameOf(idOf(q.Intent)), len(obs.Records), err)
		return err
	})
	if err == nil {
		p.mu.Lock()
		p.reads[q.Intent.Stamp()] = began
		p.mu.Unlock()
	}
	return obs, err
}

func (p *process) Invert(w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (intent.WriteIntent, error) {
	return p.Connector.(connectors.Inverter).Invert(w, before, after)
}

func idOf(w intent.WriteIntent) ledger.ID { return ledger.IDOf(w.StructuralKey()) }
