package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
)

// Callers of three ledgers on one database, who may give up, while connections
// are cut again and again.
func TestLinearizable(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		cut    time.Duration // between two cuts; 0: none
	}{
		"quiet":         {"what only the callers do to each other", 0},
		"cut all along": {"a call whose connection is cut was done or not, and nothing between", 15 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			d := fresh(t)
			ledgers := []ledger.Ledger{d.open(nil), d.open(nil), d.open(nil)}
			o := ledgertest.Linear{Histories: 15 / need.OneIn(5), Faults: 4 * time.Millisecond}
			if c.cut > 0 {
				o.Disturb = func(stop <-chan struct{}) { d.cut(stop, c.cut) }
			}
			ledgertest.Linearizable(t, func(*testing.T) []ledger.Ledger { return ledgers }, o)
			if t.Failed() {
				t.Logf("reason: %s", c.reason)
			}
		})
	}
}

// cut ends the sessions of a database again and again.
func (d *database) cut(stop <-chan struct{}, every time.Duration) {
	sql := fmt.Sprintf("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s'", d.name)
	for {
		select {
		case <-stop:
			return
		case <-time.After(every):
		}
		if err := d.server.Exec("postgres", sql); err != nil {
			d.t.Error(err)
			return
		}
	}
}
