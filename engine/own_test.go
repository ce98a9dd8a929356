package engine_test

import (
	"errors"
	"testing"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// A caller of an API writes nothing in readback's own name, and takes no key of readback's own
// writes.
func TestOwnNames(t *testing.T) {
	for name, c := range map[string]struct {
		who               engine.Principal
		destination, tool string
		path              string
		reason            string
	}{
		"an agent's notice":   {engine.Principal{Role: engine.RoleAgent}, "webhook:ops", "pay", "/destination", "it would be signed, and say what never happened"},
		"an operator's":       {engine.Principal{Role: engine.RoleOperator}, "webhook:ops", "pay", "/destination", "nor do operators count as readback"},
		"in a notice's place": {engine.Principal{Role: engine.RoleAgent}, "orders", "readback.notice", "/tool", "the notice would not be made"},
		"a name like it":      {engine.Principal{Role: engine.RoleAgent}, "orders", "readbacks.notice", "", "it is another actor's own"},
		"readback itself":     {engine.Principal{}, "orders", "readback.notice", "", "it must"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, orders.Plain.Options(), nil)
			w := order("A-1", intent.Create)
			w.Destination, w.Tool = c.destination, c.tool
			_, err := b.engine.Do(engine.As(t.Context(), c.who), w)
			var bad *intent.InvalidError
			if errors.As(err, &bad) != (c.path != "") || c.path != "" && bad.Problems[0].Path != c.path || c.path == "" && err != nil {
				t.Errorf("done: %v; want %q refused: %s", err, c.path, c.reason)
			}
			if err := b.engine.Check(w); errors.Is(err, intent.ErrInvalid) != (c.path != "" || c.who.Role == "") {
				t.Errorf("checked: %v: %s", err, c.reason)
			}
		})
	}
}
