package ledgertest_test

import (
	"testing"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
)

// The test of a driver of your own: every promise of a ledger, in virtual time.
func Example() {
	_ = func(t *testing.T) { // func TestMyLedger(t *testing.T)
		ledgertest.Run(t, func(*testing.T) ledger.Ledger {
			return ledger.NewMemory() // in place of yours, empty
		}, ledgertest.Options{})
	}
	// Output:
}
