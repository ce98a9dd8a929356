package mail

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
)

// useSent is how servers mark the mailbox for sent mail (RFC 6154).
const useSent = `\Sent`

func (c *Connector) where() imap.Box { return imap.Box{Name: c.o.Mailbox, Use: useSent} }

// independent: mail that is sent by SMTP is read by IMAP, in a mailbox into which this connector
// writes nothing. One provider may run both.
const independent = connectors.OtherInterface

// Read returns every mail in the mailbox that has the stamp or the Message-ID, and is no draft.
// It is always weak: an accepted mail arrives there later. A mailbox that does not exist is an
// error, not absence. A mail with a bounce report has failed.
func (c *Connector) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	answers, err := c.ReadMany(ctx, []connectors.Query{q})
	if err != nil {
		return connectors.Observation{}, err
	}
	return answers[0].Observation, answers[0].Err
}

// ReadMany reads several queries over one connection.
func (c *Connector) ReadMany(ctx context.Context, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	answers := make([]connectors.BulkAnswer, len(qs))
	var asked []int // the possible queries
	var names []name
	var wanted []imap.Wanted
	for i, q := range qs {
		n, err := c.locate(q.Intent, q.Stamp)
		if err != nil {
			answers[i].Err = err
			continue
		}
		asked, names = append(asked, i), append(names, n)
		wanted = append(wanted, imap.Wanted{MessageID: n.messageID, Stamp: q.Stamp})
	}
	if len(asked) == 0 {
		return answers, nil
	}
	found, err := c.box.Find(ctx, c.where(), imap.Box{Name: c.o.bounces()}, wanted)
	if err != nil {
		return nil, fmt.Errorf("mailbox of %s mails: %w", c.o.Proof, err)
	}
	for k, i := range asked {
		answers[i] = c.shown(found[k], names[k], qs[i].Stamp)
	}
	return answers, nil
}

// shown makes records of mails out of records of messages.
func (c *Connector) shown(found connectors.BulkAnswer, n name, stamp string) connectors.BulkAnswer {
	if found.Err != nil {
		return connectors.BulkAnswer{Err: found.Err}
	}
	o := found.Observation
	o.Strength, o.Path, o.Independent = connectors.Weak, string(c.o.Proof), independent
	o.Records = slices.DeleteFunc(slices.Clone(o.Records), draft)
	for i, r := range o.Records {
		r.Fields = maps.Clone(r.Fields)
		r.Fields["account"] = c.o.Account
		if r.Stamp == "" && n.made && r.Fields["message_id"] == n.messageID {
			r.Stamp = stamp // the header was removed; the Message-ID contains it too
		}
		o.Records[i] = r
	}
	return connectors.BulkAnswer{Observation: o}
}

// draft reports whether a message is marked as not sent yet.
func draft(r connectors.Record) bool {
	flags, _ := r.Fields["flags"].([]any)
	return slices.ContainsFunc(flags, func(f any) bool {
		s, _ := f.(string)
		return strings.EqualFold(s, `\Draft`)
	})
}

// Probe logs in at both servers and checks that the mailboxes exist. It sends no mail and opens
// them read-only.
func (c *Connector) Probe(ctx context.Context) error {
	s, err := c.open(ctx)
	if err != nil {
		return fmt.Errorf("submission: %w", err)
	}
	s.leave()
	if err := c.box.CheckBox(ctx, c.where()); err != nil {
		return fmt.Errorf("mailbox of %s mails: %w", c.o.Proof, err)
	}
	if bounces := c.o.bounces(); bounces != "" {
		if err := c.box.CheckBox(ctx, imap.Box{Name: bounces}); err != nil {
			return fmt.Errorf("mailbox of bounces: %w", err)
		}
	}
	return nil
}
