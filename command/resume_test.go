package command

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/ledger"
)

func TestWorkThatCannotEndIsLeftToItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine.New(ledger.NewMemory(), &connectors.Registry{}, nil)
		ctx, stop := context.WithCancel(t.Context())
		stuck := make(chan struct{})
		defer close(stuck)
		stop()
		if err := untilStopped(ctx, e, server.Grace, func() error { <-stuck; return nil }); !errors.Is(err, server.ErrLate) {
			t.Errorf("error %v, want that it was stopped late", err)
		}
		if err := untilStopped(ctx, e, server.Grace, func() error { return nil }); err != nil {
			t.Errorf("work that ends: %v", err)
		}
	})
}
