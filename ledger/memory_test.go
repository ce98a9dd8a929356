package ledger_test

import (
	"testing"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
)

func TestMemory(t *testing.T) {
	ledgertest.Run(t, func(*testing.T) ledger.Ledger { return ledger.NewMemory() }, ledgertest.Options{})
}
