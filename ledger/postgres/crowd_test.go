package postgres_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/readback-go/readback/ledger/postgres"
)

// However many callers ask for one write at once, one gets it and all get its record.
func TestCrowdAboutOneWrite(t *testing.T) {
	l := fresh(t).open(nil)
	const callers = 300
	release := l.Occupy(t, 16) // so that they meet in one batch
	var wg sync.WaitGroup
	var won, asking atomic.Int32
	res := reservation(t, asked("w"))
	for range callers {
		wg.Go(func() {
			asking.Add(1)
			_, fresh, err := l.Reserve(context.Background(), res)
			if err != nil {
				t.Error(err)
			}
			if fresh {
				won.Add(1)
			}
		})
	}
	for postgres.Waiting(l) < callers {
		runtime.Gosched()
	}
	release()
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d have it, want one", won.Load())
	}
}
