package otel

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
)

// stuck is a log that blocks: a pipe without a reader.
type stuck struct {
	slog.Handler
	on chan struct{}
}

func (s stuck) Handle(context.Context, slog.Record) error { <-s.on; return nil }

// Who has telemetry to drop is no write that waits for a log.
func TestALogThatHangsHoldsUpOneAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := make(chan struct{})
		c := &complaints{log: slog.New(stuck{slog.NewTextHandler(t.Output(), nil), on})}
		done := make(chan struct{}, 10)
		for range cap(done) {
			go func() { c.Handle(errors.New("full")); done <- struct{}{} }()
		}
		synctest.Wait()
		if len(done) != cap(done)-1 {
			t.Errorf("%d of %d went on", len(done), cap(done))
		}
		close(on)
	})
}
