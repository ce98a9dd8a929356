package pause_test

import (
	"context"
	"testing"

	"github.com/readback-go/readback/internal/pause"
)

// Select takes any case that is ready: where the context has ended, it must not matter that the
// time is up as well.
func TestForAfterTheEnd(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	for range 10_000 {
		if pause.For(ctx, 0) {
			t.Fatal("waited although the context has ended")
		}
	}
}
