package orders_test

import (
	"slices"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// TestSheets: each class has a sheet, and each topic a claim with a source.
func TestSheets(t *testing.T) {
	sheets := orders.Sheets()
	if len(sheets) != len(orders.Classes()) {
		t.Fatalf("%d sheets, want one for each of %d classes", len(sheets), len(orders.Classes()))
	}
	for _, s := range sheets {
		if s.Name == "" || s.System == "" || s.Kind != orders.Kind || s.Type != "simulated" || !s.Profile.Stamped {
			t.Errorf("sheet %+v is not whole", s)
		}
		for _, topic := range connectors.Topics() {
			i := slices.IndexFunc(s.Claims, func(c connectors.Claim) bool { return c.About == topic })
			if i < 0 || s.Claims[i].Says == "" || s.Claims[i].Source == "" {
				t.Errorf("%s: nothing with a source about %s", s.Name, topic)
			}
		}
	}
}

// TestSamples: what a sample is, and what cannot be one.
func TestSamples(t *testing.T) {
	c := newWorld(t, orders.Plain.Options()).Connector()
	one, two := sample(t, c, intent.Create, "a1"), sample(t, c, intent.Create, "a2")
	if one.Key["order_id"] == two.Key["order_id"] {
		t.Error("two names have one business key")
	}
	update := sample(t, c, intent.Update, "a1")
	if update.Key["order_id"] != one.Key["order_id"] || update.Expect["note"] == one.Expect["note"] {
		t.Errorf("the update is %+v; want the key of the create and another note", update)
	}
	for name, bad := range map[string]struct {
		kind, name string
		write      intent.WriteType
		reason     string
	}{
		"kind":  {"parcel", "a1", intent.Create, "there are orders alone"},
		"name":  {orders.Kind, "a 1", intent.Create, "a blank is in no name"},
		"write": {orders.Kind, "a1", "merge", "there is no such write"},
	} {
		t.Run(name, func(t *testing.T) {
			if in, err := c.Sample(bad.kind, bad.write, bad.name); err == nil {
				t.Errorf("the sample is %+v, want an error: %s", in, bad.reason)
			}
		})
	}
}

func sample(t *testing.T, c *orders.Connector, w intent.WriteType, name string) intent.WriteIntent {
	t.Helper()
	in, err := c.Sample(orders.Kind, w, name)
	if err != nil {
		t.Fatal(err)
	}
	in.Tenant, in.Workflow, in.Tool, in.Destination = "t", "w", "probe", "orders"
	if err := in.Validate(); err != nil {
		t.Fatalf("the sample is no intent that could be accepted: %v", err)
	}
	return in
}
