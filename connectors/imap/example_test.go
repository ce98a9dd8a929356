package imap_test

import (
	"context"
	"fmt"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
)

// Messages in the mailboxes of one account.
func Example() {
	box, err := imap.New(imap.Options{
		Addr: "imap.example.org:993", Username: "bot@example.org", Mailbox: "Invoices",
		Password:    func(context.Context) (string, error) { return "from a vault", nil },
		SingleStore: true, // one Dovecot: what one session committed, every other sees
	})
	if err != nil {
		panic(err)
	}
	var reg connectors.Registry
	err = reg.Register("mailbox", connectors.Destination{Connector: box, Profiles: box.Profiles()})
	fmt.Println(err)
	// Output: <nil>
}
