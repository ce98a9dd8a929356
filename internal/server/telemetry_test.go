package server

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/guards"
)

// The metric of a refused login counts since the refusal by the ledger's clock, is
// never 0 while the login is refused, and is of that destination alone.
func TestForHowLongALoginIsRefused(t *testing.T) {
	now := time.Date(2026, 1, 31, 18, 0, 0, 0, time.UTC)
	found := guards.InForce{Now: now, Destinations: []guards.Destination{
		{Name: "crm", Breaker: guards.BreakerState{State: "open", Since: now.Add(-time.Minute), Login: now.Add(-2 * time.Hour)}},
		{Name: "mail", Breaker: guards.BreakerState{State: "open", Since: now, Login: now}},
		{Name: "orders", Breaker: guards.BreakerState{State: "open", Since: now.Add(-time.Minute)}},
		{Name: "wiki", Breaker: guards.BreakerState{State: "closed"}}}}
	want := map[string]time.Duration{"crm": 2 * time.Hour, "mail": time.Second}
	if diff := cmp.Diff(want, guardStatusOf(found, nil, nil).LoginRefused); diff != "" {
		t.Error(diff)
	}
}
