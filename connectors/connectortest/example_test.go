package connectortest_test

import (
	"testing"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// The test of a connector of your own: lost answers, late commits, reads that lag, other actors.
// The fixture is its fake, with an account of what happened there.
func Example() {
	_ = func(t *testing.T) { // func TestMyConnector(t *testing.T)
		connectortest.Run(t, connectortest.Harness{
			Open:   func(*testing.T) *connectortest.Fixture { return new(connectortest.Fixture) },
			Writes: []intent.WriteType{intent.Create, intent.Update},
			Lacks:  map[string]string{string(fault.LaggingRead): "this destination has no replicas"},
		})
	}
	// Output:
}
