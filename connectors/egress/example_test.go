package egress_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/readback-go/readback/connectors/egress"
)

// A destination that may be reached at one host and one network.
func Example() {
	allowed, err := egress.Parse("api.example.com", "10.20.0.0/16")
	if err != nil {
		panic(err)
	}
	_, err = allowed.DialContext(context.Background(), "tcp", "169.254.169.254:80")
	var refused *egress.Error
	fmt.Println(errors.As(err, &refused))
	// Output: true
}
