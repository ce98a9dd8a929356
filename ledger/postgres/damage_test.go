package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
)

// Rows that are damaged by hand, in any state.
func TestDamagedRows(t *testing.T) {
	var d *database
	ledgertest.Damage(t, func(t *testing.T) (ledger.Ledger, ledgertest.Tear) {
		d = fresh(t).movable()
		return d.open(nil), func(t *testing.T, id ledger.ID, contradict bool) {
			set := "body = 'x' || body"
			if contradict {
				set = "tool = 'another'"
			}
			d.exec(fmt.Sprintf("UPDATE ledger_writes SET %s WHERE id = '%s'", set, id))
		}
	}, ledgertest.Options{Sleep: func(by time.Duration) { d.move(by) }})
}
