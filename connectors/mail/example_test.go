package mail_test

import (
	"context"
	"fmt"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/connectors/mail"
)

// Mails of an account whose provider files each in the mailbox of sent mails, where it is read.
func Example() {
	out, err := mail.New(mail.Options{
		Addr: "smtp.example.org:465", Username: "bot@example.org", From: "bot@example.org",
		Password: func(context.Context) (string, error) { return "from a vault", nil },
		Proof:    mail.Filed,
		IMAP:     imap.Options{Addr: "imap.example.org:993"},
	})
	if err != nil {
		panic(err)
	}
	var reg connectors.Registry
	err = reg.Register("mail", connectors.Destination{Connector: out, Profiles: out.Profiles()})
	fmt.Println(err)
	// Output: <nil>
}
