package command

import (
	"encoding/json"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
)

func TestProbeOfAnHonestDestination(t *testing.T) {
	p := newPlace(t, orders.Unique.Options())
	p.configureClass("unique")
	r := p.want(exitVerified, p.run("probe", "orders", "--rounds", "2"))
	says(t, r, "MEASURED DECLARED RESULT", "orders/order")
	for _, e := range p.world.Effects() {
		if n := len(p.world.Records(e.OrderID)); n != 0 {
			t.Errorf("%d records of %s are left", n, e.OrderID)
		}
	}
}

// A destination that is weaker than its configuration is reported loudly.
func TestProbeOfAWeakDestination(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.configureClass("unique")
	r := p.want(exitAttention, p.run("--json", "probe", "orders", "--kind", "order", "--rounds", "1"))
	var found struct {
		Weaker []string `json:"weaker"`
		Left   []any    `json:"left"`
	}
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || len(found.Weaker) == 0 || len(found.Left) != 0 {
		t.Errorf("%v, %+v; want what is weaker, and nothing left\n%s", err, found, r)
	}
}

func TestProbeThatCannotBegin(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	says(t, p.want(exitInvalid, p.run("probe", "erp")), `unknown destination "erp"; registered: orders`)
	says(t, p.want(exitInvalid, p.run("probe", "orders", "--kind", "ticket")), `has no kind "ticket"`)
	says(t, p.want(exitUsage, p.run("probe", "orders", "--rounds", "0")), "--rounds is 0; want 1 to 50")
	if n := len(p.world.Effects()); n != 0 {
		t.Errorf("%d effects", n)
	}
}
