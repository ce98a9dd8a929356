package main

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/connectors/rest"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
	fakemail "github.com/readback-go/readback/internal/fakes/mail"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/readbacktest/fault"
)

// The steps, and the destinations, which have the same names.
const (
	contact = "contact"
	ticket  = "ticket"
	letter  = "mail"

	address = "ada@example.com"
)

// world is the three destinations.
type world struct {
	crm      *fakerest.HubSpot
	tickets  *fakejira.Site
	post     *fakemail.Server
	registry connectors.Registry
	early    atomic.Bool // the mail server was called too early
}

func newWorld() (*world, error) {
	post, err := fakemail.NewServer(fakemail.Options{InProcess: true})
	if err != nil {
		return nil, err
	}
	w := &world{
		crm:     fakerest.NewHubSpot("token", nil, []string{"readback_key", "readback_stamp"}),
		tickets: fakejira.New(fakejira.Options{}),
		post:    post,
	}
	for name, open := range map[string]func() (connectors.Destination, error){contact: w.openCRM, ticket: w.openTickets, letter: w.openPost} {
		d, err := open()
		if err == nil {
			err = w.registry.Register(name, d)
		}
		if err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

func (w *world) close() { _ = w.post.Close() } // it ends with this process anyway

func (w *world) sender() string {
	sender, _ := w.post.Account()
	return sender
}

func token(context.Context) (string, error) { return "token", nil }

func (w *world) openCRM() (connectors.Destination, error) {
	declared, err := rest.ShippedDeclaration("hubspot-contacts")
	if err != nil {
		return connectors.Destination{}, err
	}
	c, err := rest.New(declared, rest.Options{
		Transport: w.crm.Transport(), Secrets: map[string]func(context.Context) (string, error){"token": token},
	})
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}

func (w *world) openTickets() (connectors.Destination, error) {
	c, err := jira.New(jira.Options{
		URL: "https://example.invalid", User: "robot@example.org", Token: token, Transport: w.tickets.Transport(),
		Settle: time.Second, // its search does not lag; a real one's does
	})
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}

func (w *world) openPost() (connectors.Destination, error) {
	sender, password := w.post.Account()
	secret := func(context.Context) (string, error) { return password, nil }
	c, err := mail.New(mail.Options{
		Addr: w.post.Addr(), Dial: w.dialPost, Username: sender, Password: secret, From: sender, Account: sender,
		Proof:    mail.Filed, // this server files what is sent
		Security: mail.Insecure,
		IMAP:     imap.Options{Addr: w.post.Mailbox.Addr(), Dial: w.post.Mailbox.Dial, Security: imap.Insecure, Username: sender, Password: secret},
	})
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}

// dialPost calls the mail server, and notes whether that is too early.
func (w *world) dialPost(ctx context.Context, network, addr string) (net.Conn, error) {
	if contacts, tickets, _, _ := w.count(); contacts != 1 || tickets != 1 {
		w.early.Store(true)
	}
	return w.post.Dial(ctx, network, addr)
}

// misbehave makes one destination refuse everything, and one, or all, lose their answers.
func (w *world) misbehave(refused, lost string) error {
	const often = 20
	for range often {
		for _, m := range []struct {
			step    string
			crm     fault.Kind
			tickets fault.Kind
			post    fault.Kind
		}{
			{refused, fault.Refused, fault.Refused, fault.Refused},
			{lost, fault.LostAnswer, fault.LostAnswer, fault.LostAnswer},
		} {
			if m.step == contact || m.step == every && refused != contact {
				if err := w.crm.Set(fault.Fault{Kind: m.crm}.Once()); err != nil {
					return err
				}
			}
			if m.step == ticket || m.step == every && refused != ticket {
				if err := w.tickets.Set(fault.Fault{Kind: m.tickets}.Once()); err != nil {
					return err
				}
			}
			if m.step == letter || m.step == every && refused != letter {
				w.post.SetFault(m.post, fakemail.Always)
			}
		}
	}
	return nil
}

// count reads from the destinations themselves.
func (w *world) count() (contacts, tickets, mails, sends int) {
	return len(w.crm.Now("contacts")), len(w.tickets.Issues()), len(w.post.Accepted()), len(w.post.Received())
}
