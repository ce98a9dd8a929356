package connectors_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/readback-go/readback/connectors"
)

// A connector says what it knows of a write that failed. An error without such a word leaves it
// unknown whether the write was applied, and the engine reads before it does anything else.
func ExampleFateOf() {
	for _, err := range []error{
		nil,
		connectors.Refused("422", errors.New("the amount is negative")),
		connectors.NotSent(errors.New("connection refused")),
		context.DeadlineExceeded,
	} {
		fmt.Printf("%q\n", connectors.FateOf(err))
	}
	// Output:
	// "answered"
	// "refused"
	// "not_sent"
	// ""
}
