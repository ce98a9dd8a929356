package lag_test

import (
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/ledger"
)

// The engine waits before its first read as long as effects of this destination took to become
// visible until now. All engines of a ledger share what they learn.
func Example() {
	led, reg := ledger.NewMemory(), new(connectors.Registry)
	learned := lag.New(led, nil)
	defer func() { _ = learned.Close() }()
	eng := engine.New(led, reg, &engine.Options{Lag: learned})
	defer eng.Close()
	// Output:
}
