package sqlite_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"github.com/readback-go/readback/ledger/sqlite"
)

// clock stops until it is moved.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock {
	return &clock{at: time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// open opens a ledger that is closed with the test.
func open(t testing.TB, path string, o *sqlite.Options) *sqlite.Ledger {
	t.Helper()
	l, err := sqlite.Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

func TestLedger(t *testing.T) {
	var c *clock // of the ledger that was opened last: no scenario moves that of another
	ledgertest.Run(t, func(t *testing.T) ledger.Ledger {
		c = newClock()
		return open(t, filepath.Join(t.TempDir(), "ledger.db"), &sqlite.Options{Now: c.now})
	}, ledgertest.Options{Sleep: func(d time.Duration) { c.move(d) }, Enqueue: enqueue, EnqueueSealed: enqueueSealed})
}

// The suite once more on the clock of a testing/synctest bubble, as in the tests of an engine.
func TestInBubble(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledger.Ledger {
		return open(t, filepath.Join(t.TempDir(), "ledger.db"), nil)
	}, ledgertest.Options{Enqueue: enqueue, EnqueueSealed: enqueueSealed, OneIn: need.OneIn(4)})
}
