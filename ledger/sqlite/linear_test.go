package sqlite_test

import (
	"testing"
	"time"

	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Callers of two ledgers on one file, who may give up, while another connection takes the lock of
// the file again and again.
func TestLinearizable(t *testing.T) {
	path := file(t)
	ledgers := []ledger.Ledger{open(t, path, nil), open(t, path, nil)}
	other := outsider(t, path)
	ledgertest.Linearizable(t, func(*testing.T) []ledger.Ledger { return ledgers }, ledgertest.Linear{Histories: 20 / need.OneIn(5), Faults: 4 * time.Millisecond, Disturb: func(stop <-chan struct{}) {
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			if sqlitex.ExecuteTransient(other, "BEGIN IMMEDIATE", nil) != nil {
				continue // another connection has it
			}
			<-time.After(time.Millisecond)
			if err := sqlitex.ExecuteTransient(other, "ROLLBACK", nil); err != nil {
				t.Error(err)
				return
			}
		}
	}})
}
