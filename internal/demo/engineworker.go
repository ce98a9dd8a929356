package demo

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

const (
	// patience and slack are the engine's; see engine.Options.
	patience = time.Second
	slack    = time.Second
)

// readback declares each order to an engine on a ledger on disk. After a restart it declares all
// of them again, as an orchestrator that replays its steps would: first those that were never
// begun, one after the other, then all that an earlier process began. For those the engine
// returns the outcome, or continues the dead process's work as soon as its lease has ended.
func (w *worker) readback(ctx context.Context) (err error) {
	l, err := sqlite.Open(ctx, w.spec.ledgerDB(), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	var reg connectors.Registry
	if err := reg.Register(string(w.spec.Target), connectors.Destination{Connector: w.conn, Profiles: w.profiles}); err != nil {
		return err
	}
	e := engine.New(l, &reg, &engine.Options{Patience: patience, Slack: slack})
	defer e.Close()
	var begun []int
	for n := 1; n <= w.spec.Orders; n++ {
		_, err := l.Get(ctx, "demo", w.id(n))
		switch {
		case err == nil:
			begun = append(begun, n)
			continue
		case !errors.Is(err, ledger.ErrNotFound):
			return err
		}
		if err := w.declare(ctx, e, l, n); err != nil {
			return err
		}
	}
	return w.declareAll(ctx, e, l, begun)
}

// id is the name of an order's write in every ledger.
func (w *worker) id(n int) ledger.ID { return ledger.IDOf(w.spec.intent(n).StructuralKey()) }

func (w *worker) declareAll(ctx context.Context, e *engine.Engine, l ledger.Ledger, begun []int) error {
	failed := make([]error, len(begun))
	var wg sync.WaitGroup
	for i, n := range begun {
		wg.Go(func() { failed[i] = w.declare(ctx, e, l, n) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// declare submits one order and reports its result.
func (w *worker) declare(ctx context.Context, e *engine.Engine, l ledger.Ledger, n int) error {
	out, err := e.Do(ctx, w.spec.intent(n))
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	how, err := story(ctx, l, out)
	if err != nil {
		return err
	}
	return w.end(n, how)
}

// story describes in one word how the order came to its outcome, from its events.
func story(ctx context.Context, l ledger.Ledger, out engine.Outcome) (ending, error) {
	switch out.Status {
	case ledger.Verified:
	case ledger.StatusReview:
		return endReview, nil
	default:
		return endOther, nil
	}
	rec, err := l.Get(ctx, "demo", out.ID)
	if err != nil {
		return "", err
	}
	events, err := l.Events(ctx, "demo", out.ID)
	if err != nil {
		return "", err
	}
	recovered := slices.ContainsFunc(events, func(e ledger.Event) bool { return e.Kind == ledger.EvRecovered })
	switch {
	case rec.Sends-rec.Unsent > 1:
		return endSentAgain, nil
	case recovered:
		return endRecovered, nil
	case rec.Unknown:
		return endReadBack, nil
	}
	return endAtOnce, nil
}
