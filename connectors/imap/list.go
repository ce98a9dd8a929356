package imap

import (
	"context"
	"fmt"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/mailtext"
)

var _ connectors.Lister = (*Connector)(nil)

// List shows every message of one mailbox, which Scope.Within names ({"mailbox": "INBOX"}) if the
// options have no default one; with Stamped those that have the header of our stamp. Records have
// no bodies, which are not read. A mailbox does not show when a message was last changed: From
// and Until are ignored, and the listing says so.
func (c *Connector) List(ctx context.Context, s connectors.Scope) (connectors.Listing, error) {
	mailbox, err := c.scope(s)
	if err != nil {
		return connectors.Listing{}, err
	}
	l := connectors.Listing{At: time.Now(), Path: pathSearch, Strength: c.strength(), Stamped: s.Stamped}
	session, err := c.open(ctx)
	if err != nil {
		return connectors.Listing{}, err
	}
	defer session.leave()
	chosen, err := session.choose(mailbox, true)
	if err != nil {
		return connectors.Listing{}, err
	}
	criteria := imap.SearchCriteria{}
	if s.Stamped {
		criteria = headerKey(stampHeader, "") // RFC 9051: every message that has the field
	}
	found, err := session.searchFor(&criteria, connectors.MaxListed)
	if err != nil {
		return connectors.Listing{}, err
	}
	envelopes, err := session.envelopes(found, chosen)
	if err != nil {
		return connectors.Listing{}, err
	}
	for _, e := range envelopes {
		one := e.record(mailbox, chosen.UIDValidity, "")
		if !s.Stamped || connectors.IsStamp(one.Stamp) {
			l.Records = append(l.Records, connectors.Listed{Record: one})
		}
	}
	l.Complete = int64(len(envelopes)) == span(found)
	if !l.Complete {
		l.Why = fmt.Sprintf("the search finds %d messages, and %d are shown", span(found), len(envelopes))
	}
	return l, nil
}

// scope is the mailbox that is meant.
func (c *Connector) scope(s connectors.Scope) (string, error) {
	mailbox := c.o.Mailbox
	for name, v := range s.Within {
		text, isText := v.(string)
		if name != "mailbox" || !isText || text == "" || len(text) > maxMailbox {
			return "", fmt.Errorf("%w: within %s; want mailbox alone, the name of one", connectors.ErrScope, mailtext.Clip(name))
		}
		mailbox = text
	}
	switch {
	case s.Kind != KindMessage && s.Kind != KindNamed:
		return "", fmt.Errorf("%w: kind %q; want %s or %s", connectors.ErrScope, mailtext.Clip(s.Kind), KindMessage, KindNamed)
	case mailbox == "":
		return "", fmt.Errorf("%w: no mailbox; want within: {mailbox: INBOX}", connectors.ErrScope)
	}
	return mailbox, nil
}
