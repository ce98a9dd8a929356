//go:build unix

package soak

import (
	"context"
	"fmt"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// holding stops a worker at a point of its work until its parent releases it: the parent stops
// the whole process there.
type holding struct {
	at       string // "announced", "sending", or "" for nowhere
	released <-chan string
}

func (h *holding) hold(at string) {
	if h.at == at {
		fmt.Println(at)
		<-h.released
		fmt.Println("on")
	}
}

// ledger holds right after the commit of an announcement, before the worker
// knows of it.
func (h *holding) ledger(book *postgres.Ledger) ledger.Ledger {
	if h.at == "" {
		return book
	}
	return heldLedger{book, h}
}

type heldLedger struct {
	*postgres.Ledger
	h *holding
}

// Append implements [ledger.Ledger].
func (l heldLedger) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (ledger.Record, error) {
	rec, err := l.Ledger.Append(ctx, id, fence, events...)
	if slices.ContainsFunc(events, func(e ledger.Event) bool { return e.Kind == ledger.EvAnnounced }) {
		l.h.hold("announced")
	}
	return rec, err
}

// connector reports what reaches the destination, and holds where no check is possible any more.
func (h *holding) connector(c connectors.Connector) connectors.Connector {
	if h.at == "" {
		return c
	}
	return heldConnector{c, h}
}

type heldConnector struct {
	connectors.Connector
	h *holding
}

// Write implements [connectors.Connector]. The context does not affect what it holds: bytes in
// the buffer of a proxy have no deadline.
func (c heldConnector) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	c.h.hold("sending")
	fmt.Println("sent")
	return c.Connector.Write(context.WithoutCancel(ctx), r)
}
