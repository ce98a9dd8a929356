package imap

import (
	"context"
	"fmt"

	"github.com/emersion/go-imap/v2"

	"github.com/readback-go/readback/internal/mailtext"
)

// Probe logs in and checks that the server is as the options declare and that the mailbox exists
// (Options.Mailbox, otherwise INBOX). It writes nothing and opens the mailbox read-only.
func (c *Connector) Probe(ctx context.Context) error {
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer s.leave()
	mailbox := c.o.Mailbox
	if mailbox == "" {
		mailbox = "INBOX"
	}
	chosen, err := s.choose(mailbox, true)
	switch {
	case err != nil:
		return err
	case !c.o.NoUIDPlus && !s.caps.Has(imap.CapUIDPlus):
		return fmt.Errorf("%w: deletes would be refused; set NoUIDPlus to do without them", errNoUIDPlus)
	case c.o.CondStore && chosen.HighestModSeq == 0:
		return fmt.Errorf("%w for mailbox %s; leave CondStore out", errNoCondStore, mailtext.Clip(mailbox))
	}
	return nil
}
