package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
)

const (
	// naiveTries is how often a naive client calls. Nothing is lost twice in
	// a row, so two would do.
	naiveTries = 3
	// plainTimeout is how long naive retry and the plain ledger wait for an answer. It never
	// expires: answers are lost by cutting the connection.
	plainTimeout = 20 * time.Second
)

// ending is what a worker believes to have become of an order.
type ending string

const (
	// Of naive retry and the plain ledger.
	endAnswered   ending = "answered"   // the destination accepted
	endUnanswered ending = "unanswered" // it was called, and the result is unknown
	// Of readback.
	endAtOnce    ending = "at_once"    // verified, nothing unusual
	endReadBack  ending = "read_back"  // verified: the answer was lost, a read shows the order
	endRecovered ending = "recovered"  // verified: a killed worker left it, a read found it
	endSentAgain ending = "sent_again" // verified: it was proven absent and sent a second time
	endReview    ending = "review"     // for a reviewer
	endOther     ending = "other"      // anything else that is settled
)

// worker is one strategy at work.
type worker struct {
	spec     spec
	conn     connectors.Connector
	profiles map[string]connectors.Profile
	link     *link
}

func work(ctx context.Context, s spec, l *link) error {
	d, err := s.connect()
	if err != nil {
		return err
	}
	w := &worker{spec: s, conn: stopping{d.Connector, l}, profiles: d.Profiles, link: l}
	switch s.Strategy {
	case naiveRetry:
		return w.naive(ctx)
	case plainLedger:
		return w.plainLedger(ctx)
	case readback:
		return w.readback(ctx)
	}
	return fmt.Errorf("unknown strategy %q", s.Strategy)
}

// stopping is a connector that stops before and after each send, which is
// where the worker gets killed.
type stopping struct {
	connectors.Connector
	link *link
}

// Write sends once. An error of the pipe to the parent is one of fate unknown:
// the worker is about to end.
func (c stopping) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	var n int
	if _, err := fmt.Sscanf(r.Intent.Step, "order-%d", &n); err != nil {
		return connectors.Receipt{}, err
	}
	if err := c.link.reach(ctx, n, beforeSend); err != nil {
		return connectors.Receipt{}, err
	}
	receipt, err := c.Connector.Write(ctx, r)
	if stopped := c.link.reach(ctx, n, afterSend); stopped != nil {
		return connectors.Receipt{}, stopped
	}
	return receipt, err
}

// send makes one call, as a program without readback would: it leaves no stamp.
func (w *worker) send(ctx context.Context, n, attempt int) error {
	i := w.spec.intent(n)
	ctx, cancel := context.WithTimeout(ctx, plainTimeout)
	defer cancel()
	_, err := w.conn.Write(ctx, connectors.Request{Intent: i, Attempt: attempt})
	return err
}

func (w *worker) end(n int, e ending) error { return w.link.say(message{Order: n, Ended: e}) }

// naive calls until it is answered, as the retry loop of nearly every HTTP
// client does.
func (w *worker) naive(ctx context.Context) error {
	for n := 1; n <= w.spec.Orders; n++ {
		e := endUnanswered
		for attempt := 1; attempt <= naiveTries && e != endAnswered; attempt++ {
			if err := w.send(ctx, n, attempt); err == nil {
				e = endAnswered
			}
		}
		if err := w.end(n, e); err != nil {
			return err
		}
	}
	return ctx.Err()
}
