package driver_test

import (
	"testing"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

// A sealer can read a run before the process that committed it hears that it is durable. Such a
// run is not kept: nothing would drop it.
func TestWhatWasReadIsNotKept(t *testing.T) {
	var r driver.Recent
	r.Begin()
	run := driver.RunOf(ledger.Record{ID: "w", Tenant: "acme"}, []ledger.Event{{Seq: 1}, {Seq: 2}})
	read, later := driver.Stretch{Write: 1, First: 1, Last: 2, At: 1}, driver.Stretch{Write: 1, First: 1, Last: 2, At: 2}
	if _, known := r.Known(read, 7); known {
		t.Error("a run is known that was never committed here")
	}
	r.Add(read, run)
	if _, known := r.Known(read, 7); known {
		t.Error("a run that was read is known")
	}
	r.Add(later, run)
	if got, known := r.Known(later, 8); !known || got.Ticket != 8 || len(got.Events) != 2 {
		t.Errorf("known %v, %+v", known, got)
	}
	r.Drop([]int64{8, 7})
	if tickets, size := r.Tickets(); len(tickets) != 0 || size != 0 {
		t.Errorf("runs %v of %d bytes are kept after all were sealed", tickets, size)
	}
}
