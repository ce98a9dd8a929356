package mail_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/intent"
	fakemail "github.com/readback-go/readback/internal/fakes/mail"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// byPostfix are options for an account on Postfix, without a login.
func byPostfix(s *fakemail.Server) mail.Options {
	o := copied(s)
	o.IMAP.Password = o.Password
	o.CopyTo, o.Username, o.Password = o.Account, "", nil
	return o
}

// The suite on real servers: Postfix takes the mail and delivers the copy into
// Dovecot.
func TestConformancePostfix(t *testing.T) {
	p := fakemail.StartPostfix(t)
	without := lacks(mail.KindNamed)
	without[string(fault.Rollback)] = "a real mailbox does not lose what was delivered"
	connectortest.Run(t, connectortest.Harness{
		Open: func(t *testing.T) *connectortest.Fixture {
			s := p.Start(t, fakemail.Options{})
			return fixture(t, bench{t, s, mail.KindNamed, "INBOX", true}, byPostfix(s))
		},
		Writes:   []intent.WriteType{intent.Create},
		Lacks:    without,
		Variants: variants(),
		RealTime: true,
		// A busy machine must reach the server in this time, or what comes
		// late is never sent.
		SendTimeout: 2 * time.Second,
	})
}

// TestPostfixLosesAnAnswer: with an engine, one mail in the mailbox.
func TestPostfixLosesAnAnswer(t *testing.T) {
	b := &harness{t: t, s: fakemail.StartPostfix(t).Start(t, fakemail.Options{}), ledger: ledger.NewMemory()}
	b.open(byPostfix(b.s))
	b.s.SetFault(fault.LostAnswer, 1)
	out := b.do(order(b.s))
	messages, err := b.s.Mailbox.Messages("INBOX")
	if err != nil || out.Status != ledger.Verified || out.Sends != 1 || len(messages) != 1 {
		t.Fatalf("%s after %d sends (%s), %d messages, %v; want verified, 1 and 1", out.Status, out.Sends, out.Text, len(messages), err)
	}
	_, body, _ := bytes.Cut(b.s.Accepted()[0].Raw, []byte("\r\n\r\n"))
	if kept := messages[0].Raw; !bytes.HasSuffix(kept, body) || !bytes.Contains(kept, []byte("Received: ")) {
		t.Errorf("the mailbox has\n%s\nwant it carried by Postfix, its text\n%s", kept, body)
	}
}
