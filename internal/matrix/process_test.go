package matrix

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// stage names a call that a process makes for a write, by what it is for.
type stage string

// The stages. All but the send and the reads change the ledger.
const (
	stReserve   stage = "reserve"
	stAnnounce  stage = "announce a repeat"
	stSettle    stage = "settle"
	stReview    stage = "send to review"
	stPutBack   stage = "put back"
	stRenew     stage = "renew the lease"
	stUndo      stage = "register the undo"
	stRecheck   stage = "record the recheck"
	stClaim     stage = "claim"
	stSend      stage = "send"
	stBefore    stage = "read the pre-state"
	stReadBack  stage = "read back"
	stReadAgain stage = "read again"
)

// how is what happens to a process at one of its calls.
type how string

// The fates. Only with the first it lives; a stopped process continues later, when another one
// has taken over its work.
const (
	lives    how = ""
	before   how = "dies before it"                   // the call is never made
	after    how = "dies after it"                    // the call has its effect and the answer is lost
	underWay how = "dies, and the send arrives later" // of sends: it arrives long after the process died
	still    how = "is suspended before it"           // the call is made late
	gone     how = "is dead"                          // and makes no call any more
)

// The times of a process that fails. The horizon of every destination is
// longer than arrivesAfter, every lease shorter than stoppedFor.
const (
	diesWithin   = time.Second
	arrivesAfter = 20 * time.Second
	stoppedFor   = 5 * time.Minute
)

// point is one moment of a process: the nth call of a stage.
type point struct {
	stage stage
	nth   int // from 1
	how   how
}

var errDead = errors.New("this process is dead")

// process is one process of the system. Its calls are counted, and at one of
// them it meets its end; from then on whatever it tries has no effect.
type process struct {
	name string
	end  point

	mu      sync.Mutex
	counts  map[stage]int
	order   []stage // in which stages were first met
	dead    bool
	met     bool
	stopped chan struct{} // closed when it dies or stops
}

func newProcess(name string, end point) *process {
	return &process{name: name, end: end, counts: map[stage]int{}, stopped: make(chan struct{})}
}

// enter counts a call and returns its fate.
func (p *process) enter(s stage) how {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return gone
	}
	if p.counts[s] == 0 {
		p.order = append(p.order, s)
	}
	p.counts[s]++
	if p.end.stage != s || p.end.nth != p.counts[s] {
		return lives
	}
	p.met = true
	close(p.stopped)
	p.dead = p.end.how != still
	return p.end.how
}

func (p *process) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.dead
}

// reached reports whether it came to its end.
func (p *process) reached() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.met
}

// call makes one call with its fate. Calls that change something run to their end even after
// their caller has gone.
func (p *process) call(s stage, do func()) error {
	switch p.enter(s) {
	case gone, before:
		return errDead
	case still:
		time.Sleep(stoppedFor)
	}
	do()
	if !p.alive() {
		return errDead
	}
	return nil
}

// book is the ledger as a process reaches it.
type book struct {
	ledger.Ledger
	p       *process
	settled func(ledger.Record)
}

// Reserve implements [ledger.Ledger].
func (b book) Reserve(ctx context.Context, r ledger.Reservation) (rec ledger.Record, fresh bool, err error) {
	died := b.p.call(stReserve, func() { rec, fresh, err = b.Ledger.Reserve(context.WithoutCancel(ctx), r) })
	if died != nil {
		return ledger.Record{}, false, died
	}
	return rec, fresh, err
}

// Append implements [ledger.Ledger].
func (b book) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (rec ledger.Record, err error) {
	died := b.p.call(stageOf(events), func() {
		rec, err = b.Ledger.Append(context.WithoutCancel(ctx), id, fence, events...)
		if err == nil && stageOf(events) == stSettle {
			b.settled(rec)
		}
	})
	if died != nil {
		return ledger.Record{}, died
	}
	return rec, err
}

// stageOf names a commit by its last event.
func stageOf(events []ledger.Event) stage {
	if len(events) == 0 {
		return stRenew
	}
	switch events[len(events)-1].Kind {
	case ledger.EvAnnounced:
		return stAnnounce
	case ledger.EvSettled:
		return stSettle
	case ledger.EvEscalated:
		return stReview
	case ledger.EvCompensating:
		return stUndo
	case ledger.EvRechecked:
		return stRecheck
	}
	return stPutBack
}

// Claim implements [ledger.Ledger]. Only a claim that lends something counts.
func (b book) Claim(ctx context.Context, c ledger.Claim) (lent []ledger.Record, err error) {
	if !b.p.alive() {
		return nil, errDead
	}
	if !b.lends(ctx, c) {
		return nil, nil
	}
	if died := b.p.call(stClaim, func() { lent, err = b.Ledger.Claim(ctx, c) }); died != nil {
		return nil, died
	}
	return lent, err
}

func (b book) lends(ctx context.Context, c ledger.Claim) bool {
	all, err := b.Ledger.List(ctx, ledger.Filter{Tenant: tenant})
	return err == nil && slices.ContainsFunc(all, func(r ledger.Record) bool {
		return (c.ID == "" || c.ID == r.ID) && r.Claimable(r.Now, c.Early && c.ID != "")
	})
}

// Get implements [ledger.Ledger]. It changes nothing, so no process dies at it.
func (b book) Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error) {
	if !b.p.alive() {
		return ledger.Record{}, errDead
	}
	return b.Ledger.Get(ctx, tenant, id)
}

// link is the destination as a process reaches it.
type link struct {
	connectors.Connector
	p    *process
	base ledger.Ledger
}

// Write implements [connectors.Connector].
func (l link) Write(ctx context.Context, r connectors.Request) (receipt connectors.Receipt, err error) {
	switch l.p.enter(stSend) {
	case gone, before:
		return connectors.Receipt{}, errDead
	case after: // the connection ends with the process
		ctx, cancel := context.WithTimeout(ctx, diesWithin)
		defer cancel()
		_, _ = l.Connector.Write(ctx, r) // the answer is lost
		return connectors.Receipt{}, errDead
	case underWay: // it waits in a proxy, which keeps it longer than the process lives
		late := context.WithoutCancel(ctx)
		time.AfterFunc(arrivesAfter, func() {
			ctx, cancel := context.WithTimeout(late, diesWithin)
			defer cancel()
			_, _ = l.Connector.Write(ctx, r) // the answer is lost
		})
		return connectors.Receipt{}, errDead
	case still:
		time.Sleep(stoppedFor)
	}
	return l.Connector.Write(ctx, r)
}

// Read implements [connectors.Connector].
func (l link) Read(ctx context.Context, q connectors.Query) (obs connectors.Observation, err error) {
	died := l.p.call(l.reading(q), func() { obs, err = l.Connector.Read(ctx, q) })
	if died != nil {
		return connectors.Observation{}, died
	}
	return obs, err
}

// reading names a read by the state of the write.
func (l link) reading(q connectors.Query) stage {
	rec, err := l.base.Get(context.Background(), tenant, ledger.IDOf(q.Intent.StructuralKey()))
	switch {
	case err != nil, rec.Sends == 0:
		return stBefore
	case rec.State == ledger.Settled, rec.State == ledger.Review:
		return stReadAgain
	}
	return stReadBack
}

// Invert implements [connectors.Inverter].
func (l link) Invert(w intent.WriteIntent, was *connectors.Observation, is connectors.Observation) (intent.WriteIntent, error) {
	return l.Connector.(connectors.Inverter).Invert(w, was, is)
}
