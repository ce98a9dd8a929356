package probe

import (
	"context"
	"testing"

	"github.com/readback-go/readback/connectors/imap"
	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TestMailbox probes a real protocol in real time: a server in memory that keeps one store, as
// declared, and one that applies every first APPEND twice.
func TestMailbox(t *testing.T) {
	for name, kind := range map[string]fault.Kind{"honest": "", "twice": fault.DuplicateBehindOurBack} {
		t.Run(name, func(t *testing.T) {
			s := fakeimap.Start(t, fakeimap.Options{Mailboxes: []string{"INBOX", "Samples"}})
			probeMailbox(t, s, kind, false)
		})
	}
}

// TestMailboxDovecot does so on a real server, where there is one.
func TestMailboxDovecot(t *testing.T) {
	d := fakeimap.StartDovecot(t)
	probeMailbox(t, d.Start(t, fakeimap.Options{Mailboxes: []string{"INBOX", "Samples"}}), "", true)
}

func probeMailbox(t *testing.T, s *fakeimap.Server, kind fault.Kind, condStore bool) {
	t.Helper()
	username, password := s.Account()
	c, err := imap.New(imap.Options{Addr: s.Addr(), Security: imap.Insecure, Username: username,
		Password: func(context.Context) (string, error) { return password, nil },
		Mailbox:  "Samples", SingleStore: true, CondStore: condStore})
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		s.SetFault(kind, 1)
	}
	rep, err := Run(t.Context(), c, c.Profiles()[imap.KindNamed], imap.KindNamed, Options{Rounds: 2})
	if err != nil || len(rep.Left) > 0 || (len(rep.Weaker) > 0) != (kind != "") {
		t.Errorf("error %v\n%s", err, rep.Text())
	}
	t.Log("\n" + rep.Text())
	if n, err := s.Count("Samples"); err != nil || n != 0 {
		t.Errorf("%d messages are left (%v), want none", n, err)
	}
}
