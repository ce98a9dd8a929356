package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// mortal is one process's access to its ledger and its destination. Once it is dead, none of
// its calls has an effect any more.
type mortal struct {
	ledger.Ledger
	connectors.Connector
	settled func(ledger.Record)

	mu     sync.Mutex
	doomed bool
	calls  int    // calls left, when doomed
	how    string // "before", "after", "landing"
	dead   bool
}

var errDead = errors.New("this process is dead")

func (m *mortal) doom(calls int, how string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doomed, m.calls, m.how = true, calls, how
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// enter counts a call and returns whether it is made and whether it is the last.
func (m *mortal) enter() (made, last bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.dead:
		return false, true
	case !m.doomed:
		return true, false
	case m.calls > 0:
		m.calls--
		return true, false
	}
	m.dead = true
	return m.how == "after", true
}

func (m *mortal) call(do func()) error {
	made, last := m.enter()
	if made {
		do()
	}
	if last {
		return errDead
	}
	return nil
}

func (m *mortal) Reserve(ctx context.Context, r ledger.Reservation) (rec ledger.Record, fresh bool, err error) {
	died := m.call(func() {
		if rec, fresh, err = m.Ledger.Reserve(ctx, r); err == nil && fresh {
			m.noted(rec, r.Events)
		}
	})
	if died != nil {
		return ledger.Record{}, false, died
	}
	return rec, fresh, err
}

func (m *mortal) Claim(ctx context.Context, c ledger.Claim) (lent []ledger.Record, err error) {
	if m.isDead() {
		return nil, errDead
	}
	// A claim that leases nothing is no call: a process that only waits lives.
	lent, err = m.Ledger.Claim(ctx, c)
	if len(lent) > 0 {
		if died := m.call(func() {}); died != nil {
			return nil, died
		}
	}
	return lent, err
}

func (m *mortal) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (rec ledger.Record, err error) {
	died := m.call(func() {
		if rec, err = m.Ledger.Append(ctx, id, fence, events...); err == nil {
			m.noted(rec, events)
		}
	})
	if died != nil {
		return ledger.Record{}, died
	}
	return rec, err
}

// noted reports commits that settle a write.
func (m *mortal) noted(rec ledger.Record, events []ledger.Event) {
	for _, e := range events {
		if e.Kind == ledger.EvSettled {
			m.settled(rec)
		}
	}
}

func (m *mortal) Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error) {
	if m.isDead() {
		return ledger.Record{}, errDead
	}
	return m.Ledger.Get(ctx, tenant, id)
}

func (m *mortal) Find(ctx context.Context, s ledger.Search) (ledger.SearchResult, error) {
	return m.Ledger.Find(ctx, s)
}

func (m *mortal) Write(ctx context.Context, r connectors.Request) (receipt connectors.Receipt, err error) {
	if made, last := m.enter(); !last {
		return m.Connector.Write(ctx, r)
	} else if made { // the connection ends with the process, the request has reached the destination
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, _ = m.Connector.Write(ctx, r) // no caller gets the response
		return connectors.Receipt{}, errDead
	}
	m.mu.Lock()
	landing := m.how == "landing"
	m.how = ""
	m.mu.Unlock()
	if landing { // the request is delayed in transit
		late := context.WithoutCancel(ctx)
		time.AfterFunc(15*time.Second, func() {
			ctx, cancel := context.WithTimeout(late, time.Second)
			defer cancel()
			_, _ = m.Connector.Write(ctx, r) // no caller gets the response
		})
	}
	return connectors.Receipt{}, errDead
}

func (m *mortal) Read(ctx context.Context, q connectors.Query) (obs connectors.Observation, err error) {
	if died := m.call(func() { obs, err = m.Connector.Read(ctx, q) }); died != nil {
		return connectors.Observation{}, died
	}
	return obs, err
}

func (m *mortal) Invert(w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (intent.WriteIntent, error) {
	return m.Connector.(connectors.Inverter).Invert(w, before, after)
}

// history is one run of the model beside the engine.
type history struct {
	*bench
	plan     plan
	began    time.Time
	lives    [modelEngines]*mortal
	engines  [modelEngines]*engine.Engine
	first    [modelWrites]string        // the digest that was recorded first, "" for none
	reported [modelWrites]ledger.Status // the last final outcome
	unknown  [modelWrites]bool          // it was known once that a send has an unknown fate
	forced   [modelWrites]bool          // a reviewer vouched for a repeat
	idle     time.Duration
	guard    *moody
	mu       sync.Mutex
	problem  error
}

func newHistory(t *testing.T, p plan) *history {
	h := &history{bench: newBench(t, p.options(), nil), plan: p, idle: 10 * time.Second, guard: &moody{holds: p.Holds}}
	for n := range modelEngines {
		h.born(n)
	}
	for n, w := range p.Writes {
		if w.There {
			h.foreignRecord(n)
		}
	}
	time.Sleep(time.Hour)
	h.began = time.Now()
	return h
}

func (h *history) fail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.problem == nil {
		h.problem = fmt.Errorf(format, args...)
	}
}

func (h *history) id(n int) ledger.ID   { return ledger.IDOf(h.plan.intent(n).StructuralKey()) }
func (h *history) orderID(n int) string { return fmt.Sprint("M-", n) }
func (h *history) recorded(n int) (ledger.Record, bool) {
	rec, err := h.ledger.Get(context.Background(), "acme", h.id(n))
	return rec, err == nil
}

// born starts a process anew.
func (h *history) born(n int) {
	d := h.world.Destination()
	h.lives[n] = &mortal{Ledger: h.ledger, Connector: d.Connector, settled: h.settledNow}
	d.Connector = h.lives[n]
	var reg connectors.Registry
	if err := reg.Register("orders", d); err != nil {
		h.t.Fatal(err)
	}
	o := &engine.Options{Guards: h.guard}
	if h.plan.Batch {
		o.Verify = []policies.Verification{{Mode: policies.Sample, Part: 0.5, Within: time.Hour}}
	}
	h.engines[n] = engine.New(h.lives[n], &reg, o)
}

// process returns the engine of a living process.
func (h *history) process(n int) *engine.Engine {
	if h.lives[n].isDead() {
		h.engines[n].Close()
		h.born(n)
	}
	return h.engines[n]
}

func (h *history) foreignRecord(n int) {
	_, err := h.world.Seed(intent.Fields{"order_id": h.orderID(n), "amount_cents": jsonNumber(5), "currency": "EUR", "note": "theirs"}, "")
	if err != nil && h.plan.Class != orders.Unique {
		h.fail("seed: %v", err)
	}
}
