package server

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// A rate that is taken out of the file is none from then on, or that of the
// destination's own profiles.
func TestRateThatIsTakenOut(t *testing.T) {
	slow, own := connectors.Rate{Calls: 1, Per: time.Hour}, connectors.Rate{Calls: 5, Per: time.Second}
	for name, c := range map[string]struct{ set, profile, want connectors.Rate }{
		"set":     {slow, own, slow},
		"its own": {connectors.Rate{}, own, own},
		"none":    {connectors.Rate{}, connectors.Rate{}, connectors.Rate{Calls: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			world, err := orders.New(orders.Plain.Options())
			if err != nil {
				t.Fatal(err)
			}
			d := world.Destination()
			for kind, p := range d.Profiles {
				p.Rate = c.profile
				d.Profiles[kind] = p
			}
			var reg connectors.Registry
			if err := reg.Register("orders", d); err != nil {
				t.Fatal(err)
			}
			got := limited(map[string]guards.Settings{"orders": {Rate: c.set, Concurrency: 2}}, &reg)
			if diff := cmp.Diff(map[string]guards.Settings{"orders": {Rate: c.want, Concurrency: 2}}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatNeedsARestart(t *testing.T) {
	changed := []string{"destinations.orders.breaker.open", "destinations.orders.concurrency", "destinations.orders.rate.calls", "destinations.orders.url",
		"destinations.rate", "gate.lease", "gate.rules", "ledger", "risk[0].tool", "riskier", "server.listen", "server.tls.cert_file"}
	want := []string{"destinations.orders.url", "destinations.rate", "gate.lease", "ledger", "riskier", "server.listen"}
	if diff := cmp.Diff(want, restarts(changed)); diff != "" {
		t.Error(diff)
	}
}
