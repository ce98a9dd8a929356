// Mail sends one invoice through a server that loses the answer, and prints the
// verified outcome: one mail, sent once.
//
// It needs no account: the mail server and the mailbox run in this process.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakemail "github.com/readback-go/readback/internal/fakes/mail"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

func main() {
	server, err := fakemail.NewServer(fakemail.Options{Address: "billing@example.org"})
	if err == nil {
		server.SetFault(fault.LostAnswer, 1)
		err = run(context.Background(), server, os.Stdout)
	}
	if err != nil {
		slog.Error("mail", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, server *fakemail.Server, out io.Writer) error {
	address, password := server.Account()
	secret := func(context.Context) (string, error) { return password, nil }
	c, err := mail.New(mail.Options{
		Addr: server.Addr(), Username: address, Password: secret, From: address,
		Proof:    mail.Filed, // this server files what is sent
		IMAP:     imap.Options{Addr: server.Mailbox.Addr(), Security: imap.Insecure},
		Security: mail.Insecure, // it is this process
	})
	if err != nil {
		return err
	}
	var reg connectors.Registry
	if err := reg.Register("mail", connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
		return err
	}
	eng := engine.New(ledger.NewMemory(), &reg, nil)
	defer eng.Close()

	w := intent.WriteIntent{
		Tenant: "acme", Workflow: "run-42", Step: "invoice", Tool: "send_mail",
		Destination: "mail", Kind: mail.KindMessage, Write: intent.Create,
		Key:    intent.Fields{"account": address},
		Expect: intent.Fields{"to": []any{"bob@example.com"}, "subject": "Invoice 7721", "body": "Please find it below.\n"},
	}
	for range 2 { // an orchestrator that replays the step
		o, err := eng.Do(ctx, w)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "%s, sends %d, replayed %t: %s\n", o.Status, o.Sends, o.Replayed, o.Text)
	}
	sent, err := server.Mailbox.Messages(server.Sent())
	_, _ = fmt.Fprintf(out, "the mailbox of what was sent has %d such mail\n", len(sent))
	return err
}
