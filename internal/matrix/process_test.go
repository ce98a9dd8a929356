package matrix

import (
	"context"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/crashtest"
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

// suspended is how long a process is that is suspended; every lease is shorter.
const suspended = 5 * time.Minute

type (
	point   = crashtest.Point[stage]
	process = crashtest.Process[stage]
)

func newProcess(ctx context.Context, name string, end point) *process {
	return crashtest.New(ctx, name, end, suspended)
}

// reach is the ledger as a process reaches it.
func reach(l ledger.Ledger, p *process) ledger.Ledger {
	return crashtest.Ledger[stage]{Ledger: l, Process: p, Tenant: tenant,
		Reserves: func(ledger.Record) stage { return stReserve },
		Appends:  func(_ ledger.ID, events []ledger.Event) stage { return stageOf(events) },
		Claims:   func(ledger.Record) stage { return stClaim }}
}

// book is a ledger that reports what it settles, also to a process that dies meanwhile.
type book struct {
	ledger.Ledger
	settled func(ledger.Record)
}

// Append implements [ledger.Ledger].
func (b book) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
	rec, err := b.Ledger.Append(ctx, id, fence, events...)
	if err == nil && stageOf(events) == stSettle {
		b.settled(rec)
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

// link is the destination as a process reaches it.
type link struct {
	connectors.Connector
	p    *process
	base ledger.Ledger
}

// Write implements [connectors.Connector].
func (l link) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	return l.p.Send(ctx, stSend, func(ctx context.Context) (connectors.Receipt, error) { return l.Connector.Write(ctx, r) })
}

// Read implements [connectors.Connector].
func (l link) Read(ctx context.Context, q connectors.Query) (obs connectors.Observation, err error) {
	died := l.p.Call(l.reading(q), func() { obs, err = l.Connector.Read(ctx, q) })
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
