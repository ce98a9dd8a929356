package mail_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"sync/atomic"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/connectors/mail"
	fakemail "github.com/readback-go/readback/internal/fakes/mail"
	"github.com/readback-go/readback/ledger"
)

// searches counts the searches for mails that go to a server by IMAP.
type searches struct{ n atomic.Int64 }

// through makes connections that are counted.
func (s *searches) through(o *imap.Options) {
	dial := o.Dial
	o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return searching{c, s}, err
	}
}

type searching struct {
	net.Conn
	s *searches
}

// Write sees each command whole: the client flushes once for each.
func (c searching) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("UID SEARCH ")) {
		c.s.n.Add(1)
	}
	return c.Conn.Write(p)
}

// TestOtherInterfaceAtRealServers: Dovecot, read only by IMAP, shows what Postfix accepted, and
// the evidence of that read says so.
func TestOtherInterfaceAtRealServers(t *testing.T) {
	b := &harness{t: t, s: fakemail.StartPostfix(t).Start(t, fakemail.Options{}), ledger: ledger.NewMemory()}
	o := byPostfix(b.s)
	var seen searches
	seen.through(&o.IMAP)
	b.open(o)
	out := b.do(order(b.s))
	if out.Status != ledger.Verified || seen.n.Load() == 0 || b.s.Mailbox.Sends() != 0 || len(b.s.Received()) != 1 {
		t.Fatalf("%s (%s), %d searches and %d writes by IMAP, %d messages by SMTP; want verified, some, none and one",
			out.Status, out.Text, seen.n.Load(), b.s.Mailbox.Sends(), len(b.s.Received()))
	}
	rec, err := b.ledger.Get(t.Context(), "acme", out.ID)
	if err != nil {
		t.Fatal(err)
	}
	var was connectors.Observation
	if err := json.Unmarshal(rec.Evidence, &was); err != nil || was.Path != string(mail.Copied) || was.Independent != connectors.OtherInterface {
		t.Errorf("the evidence says %q by %q (%v); want another interface, by the mailbox of copies", was.Independent, was.Path, err)
	}
}
