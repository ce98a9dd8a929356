package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
)

// TestExample: the answer is lost, and the committed order is charged once; the one that was
// rolled back never is.
func TestExample(t *testing.T) {
	shop, err := store()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), shop, &out); err != nil {
		t.Fatalf("%v; it printed:\n%s", err, &out)
	}
	if kept, dropped := len(shop.Records("INV-7721")), len(shop.Records("INV-7722")); kept != 1 || dropped != 0 {
		t.Errorf("%d records of the committed order, %d of the other; want 1 and 0", kept, dropped)
	}
	for _, want := range []string{"verified, sends 1", "nothing: no such write", "the shop has 1 record"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it printed no %q:\n%s", want, &out)
		}
	}
	if !slices.ContainsFunc(shop.Calls(), func(c orders.Call) bool { return slices.Contains(c.Faults, orders.LostAnswer) }) {
		t.Error("no answer was lost")
	}
}
