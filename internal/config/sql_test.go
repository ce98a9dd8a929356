package config

import (
	"testing"
	"time"

	"github.com/readback-go/readback/internal/yamlfile"
)

// TestTheConnectorKnowsWhatIsPromised: it uses the settle time and the horizon itself (a
// standby that lags, a COMMIT that has no bound), so that changing the profile alone is
// not enough.
func TestTheConnectorKnowsWhatIsPromised(t *testing.T) {
	for name, c := range map[string]struct {
		settle, horizon yamlfile.Bound
		want            time.Duration
		declared        bool
	}{
		"given":   {yamlfile.Bound{Set: true, Known: true, Time: time.Hour}, yamlfile.Bound{Set: true, Known: true, Time: 5 * time.Minute}, 5 * time.Minute, true},
		"unknown": {yamlfile.Bound{Set: true}, yamlfile.Bound{Set: true}, 0, false},
		"neither": {yamlfile.Bound{}, yamlfile.Bound{}, time.Minute, true},
	} {
		s := &postgresSettings{DSN: "postgres://app@127.0.0.1/shop", Promises: promises{Settle: c.settle, Horizon: c.horizon},
			Tables: map[string]tableSettings{"order": {Columns: map[string]yamlfile.Text{"number": {Value: "text"}}, Key: []yamlfile.Text{{Value: "number"}}, Unique: true}}}
		d, err := s.destination(origin{})
		if err != nil {
			t.Fatal(err)
		}
		p := d.Profiles["order"]
		if got, declared := p.Horizon.Declared(); got != c.want || declared != c.declared {
			t.Errorf("%s: the connector's horizon is %v, %v; want %v, %v", name, got, declared, c.want, c.declared)
		}
		if got, declared := p.Settle.Declared(); got != c.settle.Time || declared != c.settle.Known {
			t.Errorf("%s: the connector's settle time is %v, %v; want %v", name, got, declared, c.settle)
		}
	}
}
