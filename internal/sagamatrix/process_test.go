package sagamatrix

import (
	"context"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/crashtest"
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

// suspended is how long a process is that is suspended; every lease is shorter.
const suspended = 10 * time.Minute

type (
	point   = crashtest.Point[stage]
	process = crashtest.Process[stage]
)

func newProcess(ctx context.Context, name string, end point) *process {
	return crashtest.New(ctx, name, end, suspended)
}

// book is the ledger as a process reaches it: writes and documents.
type book struct{ crashtest.Ledger[stage] }

func reach(l ledger.Ledger, p *process) book {
	return book{crashtest.Ledger[stage]{Ledger: l, Process: p, Tenant: tenant,
		Reserves: func(rec ledger.Record) stage { return stage{aboutRecord(rec), toReserve} },
		Appends:  func(id ledger.ID, events []ledger.Event) stage { return stage{about(l, id), stageOf(events)} },
		Claims:   func(rec ledger.Record) stage { return stage{aboutRecord(rec), toClaim} }}}
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
		s = stage{about(b.Ledger.Ledger, f.Append[0].ID), stageOf(f.Append[0].Events)}
	}
	died := b.Process.Call(s, func() { did, err = b.Ledger.Commit(context.WithoutCancel(ctx), f) })
	if died != nil {
		return ledger.Committed{}, died
	}
	return did, err
}

// Document implements [ledger.Documents]. Like the other reads it changes nothing, so no process
// dies at it.
func (b book) Document(ctx context.Context, tenant, kind, id string) (ledger.Document, error) {
	if !b.Process.Alive() {
		return ledger.Document{}, crashtest.ErrDead
	}
	return b.Ledger.Document(ctx, tenant, kind, id)
}

// FindDocuments implements [ledger.Documents].
func (b book) FindDocuments(ctx context.Context, q ledger.DocumentQuery) ([]ledger.Document, int, error) {
	if !b.Process.Alive() {
		return nil, 0, crashtest.ErrDead
	}
	return b.Ledger.FindDocuments(ctx, q)
}

// DueDocuments implements [ledger.Documents].
func (b book) DueDocuments(ctx context.Context, kind string, limit int) ([]ledger.Document, time.Time, error) {
	if !b.Process.Alive() {
		return nil, time.Time{}, crashtest.ErrDead
	}
	return b.Ledger.DueDocuments(ctx, kind, limit)
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
	return l.p.Send(ctx, stage{l.subject(r.Intent), toSend}, func(ctx context.Context) (connectors.Receipt, error) {
		l.coming(r.Intent, false)
		return l.Connector.Write(ctx, r)
	})
}

// Read implements [connectors.Connector].
func (l link) Read(ctx context.Context, q connectors.Query) (obs connectors.Observation, err error) {
	rec, lost := l.base.Get(ctx, tenant, ledger.IDOf(q.Intent.StructuralKey()))
	s := stage{l.subject(q.Intent), toReadBack}
	if lost != nil || rec.Sends == 0 {
		s.what = toReadBefore
	}
	died := l.p.Call(s, func() {
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

// changes reports whether the call changes what is known of a write or a saga,
// or the destination.
func (s stage) changes() bool {
	return s.what != toReadBefore && s.what != toReadBack && s.what != toClaim && s.what != toPutBack
}

// fates are the ways in which a process can fail at a call. Of a row of equal calls the first is
// taken, and where they change something the second and the last too. Only time lies between two
// calls, so that to die after one that changes nothing is to die before it, and before the next.
func fates(s stage, nth, of int) []crashtest.Fate {
	switch {
	case nth > 1 && (!s.changes() || nth > 2 && nth < of && s.what != toMove):
		return nil
	case s.what == toSend:
		return []crashtest.Fate{crashtest.Before, crashtest.After, crashtest.UnderWay, crashtest.Suspends}
	case s.changes():
		return []crashtest.Fate{crashtest.Before, crashtest.After, crashtest.Suspends}
	case s.what == toReadBack:
		return []crashtest.Fate{crashtest.After, crashtest.Suspends}
	}
	return []crashtest.Fate{crashtest.After}
}

// undoes reports whether the call is about the undoing of a step.
func (s stage) undoes() bool { return strings.HasPrefix(s.about, "undoing of ") || s.what == toUndo }
