package ledger_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/readback-go/readback/ledger"
)

// The writes of one tenant that wait for a reviewer. A row that cannot be read is named, and the
// others are still listed.
func Example() {
	var led ledger.Ledger = ledger.NewMemory() // or sqlite.Open, postgres.Open
	waiting, err := led.List(context.Background(), ledger.Filter{Tenant: "acme", States: []ledger.State{ledger.Review}})
	var unread *ledger.UnreadError
	if err != nil && !errors.As(err, &unread) {
		panic(err)
	}
	for _, r := range waiting {
		fmt.Println(r.ID, r.Destination, r.Created)
	}
	fmt.Println(len(waiting))
	// Output: 0
}
