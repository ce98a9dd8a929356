package mail_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/connectors/mail"
	fakemail "github.com/readback-go/readback/internal/fakes/mail"
	"github.com/readback-go/readback/internal/probe"
)

// TestProbing: nothing is sent before the operator allows it; then the mails go to the account
// itself, and are listed, since they cannot be taken back.
func TestProbing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakemail.Start(t, fakemail.Options{InProcess: true})
		c := connect(t, options(s))
		p := c.Profiles()[mail.KindNamed]
		if _, err := probe.Run(t.Context(), c, p, mail.KindNamed, probe.Options{Rounds: 2}); !errors.Is(err, probe.ErrIrreversible) {
			t.Errorf("error %v, want one that says that it cannot be taken back", err)
		}
		if n := len(s.Received()); n != 0 {
			t.Fatalf("%d mails were sent without permission", n)
		}
		rep, err := probe.Run(t.Context(), c, p, mail.KindNamed, probe.Options{Rounds: 2, AllowIrreversible: true})
		if err != nil || len(rep.Weaker) > 0 || len(s.Accepted()) != rep.Sent || len(rep.Left) != rep.Sent || rep.Sent == 0 {
			t.Errorf("error %v, %d mails accepted, %d listed\n%s", err, len(s.Accepted()), len(rep.Left), rep.Text())
		}
		for _, l := range rep.Left {
			if !l.Kept || l.Ref == "" {
				t.Errorf("listed as %+v, want its ref, and that it cannot be removed", l)
			}
		}
	})
}
