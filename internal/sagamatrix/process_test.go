package sagamatrix

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// stage names a call of a process: its subject and its purpose.
type stage struct{ about, what string }

func (s stage) String() string { return s.about + ": " + s.what }

// What calls are for. All but the send and the reads change the ledger.
const (
	toMove       = "move the saga"
	toForward    = "go forward with it"
	toReserve    = "reserve"
	toAnnounce   = "announce a send"
	toSettle     = "settle"
	toReview     = "hand to a reviewer"
	toUndo       = "register the undoing"
	toClaim      = "claim"
	toPutBack    = "put back"
	toSend       = "send"
	toReadBefore = "read the state before"
	toReadBack   = "read back"
)

// how is what happens to a process at one of its calls.
type how string

// The fates. Only with the first it lives; a stopped process continues later, when another one
// has taken over its work.
const (
	lives    how = ""
	before   how = "dies before it"           // the call is never made
	after    how = "dies after it"            // the call has its effect and the answer is lost
	underWay how = "dies, and it lands later" // of sends: it arrives long after the process died
	still    how = "stops before it"          // the call is made late
	gone     how = "is dead"                  // and makes no call any more
)

// The times of a process that fails. The horizon of every destination is longer
// than arrivesAfter, every lease shorter than stoppedFor.
const (
	diesWithin   = time.Second
	arrivesAfter = 20 * time.Second
	stoppedFor   = 10 * time.Minute
)

// point is one moment of a process: the nth call of a stage.
type point struct {
	stage stage
	nth   int // from 1
	how   how
}

func (p point) String() string {
	if p.how == lives {
		return "undisturbed"
	}
	return p.stage.String() + " no. " + string(rune('0'+min(p.nth, 9))) + ": " + string(p.how)
}

var errDead = errors.New("this process is dead")

// process is one process of the system. Its calls are counted, and at one of
// them it meets its end; from then on whatever it tries has no effect.
type process struct {
	name string
	end  point
	// ctx ends with the process: a dead one waits for nothing.
	ctx context.Context
	die context.CancelFunc
	// onCall is called before and after each call. Default nil.
	onCall func(s stage, when string)

	mu      sync.Mutex
	counts  map[stage]int
	order   []stage // in which stages were first met
	dead    bool
	met     bool
	stopped chan struct{} // closed when it dies or stops
}

func newProcess(ctx context.Context, name string, end point) *process {
	p := &process{name: name, end: end, counts: map[stage]int{}, stopped: make(chan struct{})}
	p.ctx, p.die = context.WithCancel(ctx)
	return p
}

// enter counts a call and returns its fate.
func (p *process) enter(s stage) how {
	if p.onCall != nil {
		p.onCall(s, "before")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return gone
	}
	if p.counts[s] == 0 {
		p.order = append(p.order, s)
	}
	p.counts[s]++
	if p.end.stage != s || p.end.nth != p.counts[s] || p.end.how == lives {
		return lives
	}
	p.met = true
	close(p.stopped)
	if p.end.how != still {
		p.dead = true
		p.die()
	}
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
	if p.onCall != nil && s.changes() {
		p.onCall(s, "after")
	}
	if !p.alive() {
		return errDead
	}
	return nil
}

// book is the ledger as a process reaches it: writes and documents.
type book struct {
	ledger.Ledger
	p *process
}

// about names the step that a write is of.
func about(l ledger.Ledger, id ledger.ID) string {
	rec, err := l.Get(context.Background(), tenant, id)
	if err != nil {
		return "?"
	}
	return aboutRecord(rec)
}

func aboutRecord(rec ledger.Record) string {
	if rec.Parent == "" {
		return rec.Step
	}
	return "undoing of " + rec.Step
}

// Commit implements [ledger.Documents].
func (b book) Commit(ctx context.Context, f ledger.Batch) (did ledger.Committed, err error) {
	s := stage{"saga", toMove}
	switch {
	case f.Reserve != nil:
		s = stage{aboutRecord(f.Reserve.Record), toForward}
	case len(f.Append) > 0:
		s = stage{about(b.Ledger, f.Append[0].ID), stageOf(f.Append[0].Events)}
	}
	died := b.p.call(s, func() { did, err = b.Ledger.Commit(context.WithoutCancel(ctx), f) })
	if died != nil {
		return ledger.Committed{}, died
	}
	return did, err
}

// Document implements [ledger.Documents]. Like the other reads it changes nothing, so no process
// dies at it.
func (b book) Document(ctx context.Context, tenant, kind, id string) (ledger.Document, error) {
	if !b.p.alive() {
		return ledger.Document{}, errDead
	}
	return b.Ledger.Document(ctx, tenant, kind, id)
}

// FindDocuments implements [ledger.Documents].
func (b book) FindDocuments(ctx context.Context, q ledger.DocumentQuery) ([]ledger.Document, int, error) {
	if !b.p.alive() {
		return nil, 0, errDead
	}
	return b.Ledger.FindDocuments(ctx, q)
}

// DueDocuments implements [ledger.Documents].
func (b book) DueDocuments(ctx context.Context, kind string, limit int) ([]ledger.Document, time.Time, error) {
	if !b.p.alive() {
		return nil, time.Time{}, errDead
	}
	return b.Ledger.DueDocuments(ctx, kind, limit)
}

// Reserve implements [ledger.Ledger].
func (b book) Reserve(ctx context.Context, r ledger.Reservation) (rec ledger.Record, fresh bool, err error) {
	s := stage{aboutRecord(r.Record), toReserve}
	died := b.p.call(s, func() { rec, fresh, err = b.Ledger.Reserve(context.WithoutCancel(ctx), r) })
	if died != nil {
		return ledger.Record{}, false, died
	}
	return rec, fresh, err
}

// Append implements [ledger.Ledger].
func (b book) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (rec ledger.Record, err error) {
	s := stage{about(b.Ledger, id), stageOf(events)}
	died := b.p.call(s, func() { rec, err = b.Ledger.Append(context.WithoutCancel(ctx), id, fence, events...) })
	if died != nil {
		return ledger.Record{}, died
	}
	return rec, err
}

// stageOf names a commit by its last event.
func stageOf(events []ledger.Event) string {
	if len(events) == 0 {
		return toPutBack
	}
	switch events[len(events)-1].Kind {
	case ledger.EvAnnounced:
		return toAnnounce
	case ledger.EvSettled:
		return toSettle
	case ledger.EvEscalated:
		return toReview
	case ledger.EvCompensating:
		return toUndo
	}
	return toPutBack
}

// Claim implements [ledger.Ledger]. Only a claim that lends something counts.
func (b book) Claim(ctx context.Context, c ledger.Claim) (lent []ledger.Record, err error) {
	if !b.p.alive() {
		return nil, errDead
	}
	what, lends := b.lends(ctx, c)
	if !lends {
		return nil, nil
	}
	if died := b.p.call(stage{what, toClaim}, func() { lent, err = b.Ledger.Claim(ctx, c) }); died != nil {
		return nil, died
	}
	return lent, err
}

func (b book) lends(ctx context.Context, c ledger.Claim) (string, bool) {
	all, err := b.List(ctx, ledger.Filter{Tenant: tenant})
	i := slices.IndexFunc(all, func(r ledger.Record) bool {
		return (c.ID == "" || c.ID == r.ID) && r.Claimable(r.Now, c.Early && c.ID != "")
	})
	if err != nil || i < 0 {
		return "", false
	}
	return aboutRecord(all[i]), true
}

// Get implements [ledger.Ledger].
func (b book) Get(ctx context.Context, tenant string, id ledger.ID) (ledger.Record, error) {
	if !b.p.alive() {
		return ledger.Record{}, errDead
	}
	return b.Ledger.Get(ctx, tenant, id)
}

// link is a destination as a process reaches it.
type link struct {
	connectors.Connector
	p    *process
	base ledger.Ledger
	// about to be done to it: arms what the cell wants to go wrong.
	coming func(w intent.WriteIntent, read bool)
}

func (l link) subject(w intent.WriteIntent) string {
	if w.Compensates != "" {
		return "undoing of " + w.Destination
	}
	return w.Destination
}

// Write implements [connectors.Connector].
func (l link) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	send := func(ctx context.Context) (connectors.Receipt, error) {
		l.coming(r.Intent, false)
		return l.Connector.Write(ctx, r)
	}
	switch l.p.enter(stage{l.subject(r.Intent), toSend}) {
	case gone, before:
		return connectors.Receipt{}, errDead
	case after: // the connection ends with the process
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), diesWithin)
		defer cancel()
		_, _ = send(ctx) // the answer is lost
		return connectors.Receipt{}, errDead
	case underWay: // it waits in a proxy, which keeps it longer than the process lives
		late := context.WithoutCancel(ctx)
		time.AfterFunc(arrivesAfter, func() {
			ctx, cancel := context.WithTimeout(late, diesWithin)
			defer cancel()
			_, _ = send(ctx) // the answer is lost
		})
		return connectors.Receipt{}, errDead
	case still:
		time.Sleep(stoppedFor)
	}
	receipt, err := send(ctx)
	if l.p.onCall != nil {
		l.p.onCall(stage{l.subject(r.Intent), toSend}, "after")
	}
	return receipt, err
}

// Read implements [connectors.Connector].
func (l link) Read(ctx context.Context, q connectors.Query) (obs connectors.Observation, err error) {
	rec, lost := l.base.Get(ctx, tenant, ledger.IDOf(q.Intent.StructuralKey()))
	s := stage{l.subject(q.Intent), toReadBack}
	if lost != nil || rec.Sends == 0 {
		s.what = toReadBefore
	}
	died := l.p.call(s, func() {
		if s.what == toReadBack {
			l.coming(q.Intent, true)
		}
		obs, err = l.Connector.Read(ctx, q)
	})
	if died != nil {
		return connectors.Observation{}, died
	}
	return obs, err
}

// Check implements [connectors.Checker].
func (l link) Check(w intent.WriteIntent) error {
	if c, ok := l.Connector.(connectors.Checker); ok {
		return c.Check(w)
	}
	return nil
}

// undoable is a link to a destination whose writes can be undone.
type undoable struct{ link }

// Invert implements [connectors.Inverter].
func (l undoable) Invert(w intent.WriteIntent, was *connectors.Observation, is connectors.Observation) (intent.WriteIntent, error) {
	return l.Connector.(connectors.Inverter).Invert(w, was, is)
}

// preparing is a link to a destination that prepares what is sent.
type preparing struct{ link }

// Prepare implements [connectors.Preparer].
func (l preparing) Prepare(ctx context.Context, r connectors.Request) ([]byte, error) {
	return l.Connector.(connectors.Preparer).Prepare(ctx, r)
}

func linked(l link) connectors.Connector {
	if _, ok := l.Connector.(connectors.Preparer); ok {
		return preparing{l}
	}
	return undoable{l}
}

// points are the moments at which a process may fail, learned from one that did
// not. Of a row of equal calls the first is taken, and where they change
// something the second and the last too.
func points(undisturbed *process) []point {
	all := []point{{}}
	for _, s := range undisturbed.order {
		n := undisturbed.counts[s]
		for nth := 1; nth <= n; nth++ {
			if nth > 1 && (!s.changes() || nth > 2 && nth < n && s.what != toMove) {
				continue
			}
			for _, h := range s.fates() {
				all = append(all, point{s, nth, h})
			}
		}
	}
	return all
}

// changes reports whether the call changes what is known of a write or a saga,
// or the destination.
func (s stage) changes() bool {
	return s.what != toReadBefore && s.what != toReadBack && s.what != toClaim && s.what != toPutBack
}

// fates are the ways in which a process can fail at a call. Only time lies
// between two calls, so that to die after one that changes nothing is to die
// before it, and before the next.
func (s stage) fates() []how {
	switch {
	case s.what == toSend:
		return []how{before, after, underWay, still}
	case s.changes():
		return []how{before, after, still}
	case s.what == toReadBack:
		return []how{after, still}
	}
	return []how{after}
}

// undoes reports whether the call is about the undoing of a step.
func (s stage) undoes() bool { return strings.HasPrefix(s.about, "undoing of ") || s.what == toUndo }
