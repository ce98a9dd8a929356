package ledger_test

import (
	"testing"
	"time"

	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
)

func TestLinearizable(t *testing.T) {
	ledgertest.Linearizable(t, func(*testing.T) []ledger.Ledger {
		return []ledger.Ledger{ledger.NewMemory()}
	}, ledgertest.Linear{Histories: 100 / need.OneIn(5), Faults: 50 * time.Microsecond})
}
