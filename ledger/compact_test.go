package ledger_test

import (
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
)

// A row without a settlement time counts as very old, and what is kept for ever is kept all the
// same. The chain has the retention that applied to the write.
func TestForever(t *testing.T) {
	r := ledger.Record{Tenant: "a", Destination: "crm", State: ledger.Settled}
	p := ledger.Prune{Keep: time.Hour, Remember: ledger.Forever, Tenants: map[string]time.Duration{"a": ledger.Forever}}
	if p.Compacts(r, time.Now()) {
		t.Error("a write that is kept for ever becomes a tombstone")
	}
	if p.Forgets(ledger.Compact(r), time.Now()) {
		t.Error("a tombstone that is remembered for ever is forgotten")
	}
	p.Destinations = map[string]time.Duration{"crm": 2 * time.Hour}
	mark, err := p.Compacted(ledger.Compact(r), time.Now())
	if err != nil || mark.Rule != "retention: keep 2h0m0s" {
		t.Errorf("mark %+v, error %v", mark, err)
	}
}
