package probe

import (
	"context"
	"testing"

	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/connectors/imap/imaptest"
)

// TestMailbox probes a real protocol in real time: a server in memory that
// keeps one store, as it says, and one whose every first APPEND is done twice.
func TestMailbox(t *testing.T) {
	for name, vice := range map[string]imaptest.Vice{"honest": "", "twice": imaptest.Duplicate} {
		t.Run(name, func(t *testing.T) {
			s := imaptest.Start(t, imaptest.Options{Mailboxes: []string{"INBOX", "Samples"}})
			probeMailbox(t, s, vice, false)
		})
	}
}

// TestMailboxDovecot does so on a real server, where there is one.
func TestMailboxDovecot(t *testing.T) {
	d := imaptest.StartDovecot(t)
	probeMailbox(t, d.Start(t, imaptest.Options{Mailboxes: []string{"INBOX", "Samples"}}), "", true)
}

func probeMailbox(t *testing.T, s *imaptest.Server, vice imaptest.Vice, condStore bool) {
	t.Helper()
	username, password := s.Account()
	c, err := imap.New(imap.Options{Addr: s.Addr(), Security: imap.Insecure, Username: username,
		Password: func(context.Context) (string, error) { return password, nil },
		Mailbox:  "Samples", SingleStore: true, CondStore: condStore})
	if err != nil {
		t.Fatal(err)
	}
	if vice != "" {
		s.SetVice(vice, 1)
	}
	rep, err := Run(t.Context(), c, c.Profiles()[imap.KindNamed], imap.KindNamed, Options{Rounds: 2})
	if err != nil || len(rep.Left) > 0 || (len(rep.Weaker) > 0) != (vice != "") {
		t.Errorf("error %v\n%s", err, rep.Text())
	}
	t.Log("\n" + rep.Text())
	if n, err := s.Count("Samples"); err != nil || n != 0 {
		t.Errorf("%d messages are left (%v), want none", n, err)
	}
}
