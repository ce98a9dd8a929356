package imap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/mailtext"
)

// Box is a mailbox that other packages read: one that is named, or the one that its server marks
// for a use (RFC 6154). Names are in the language of the account's creator; the marks are not.
type Box struct {
	// Name is its name. Default: it is found by Use.
	Name string
	// Use is the mark of the mailbox, `\Sent` for example. Required where
	// there is no name.
	Use string
}

// Wanted selects every message that has this Message-ID or this stamp, with exact equality. One
// of the two may be empty.
type Wanted struct {
	MessageID string // with its angle brackets
	Stamp     string
}

// Find reads messages for a connector that does not write them by IMAP. Records are those of
// [Connector.Read]; their body also includes the plain texts of a multipart message that are no
// attachments, one below the other. The answers are in the order of wanted; all are weak unless
// the options set SingleStore. A missing mailbox is an error, not absence.
//
// In the mailbox of bounces it searches for reports (RFC 3464) that a message was not delivered,
// and puts them in Observation.Failed. A zero bounces means none.
func (c *Connector) Find(ctx context.Context, box, bounces Box, wanted []Wanted) ([]connectors.BulkAnswer, error) {
	answers := make([]connectors.BulkAnswer, len(wanted))
	began := time.Now()
	s, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer s.leave()
	name, err := s.mailbox(box)
	if err != nil {
		return nil, err
	}
	var questions []question
	for i, w := range wanted {
		answers[i].Observation = connectors.Observation{At: began, Path: "search", Strength: c.strength()}
		if problem := w.problem(); problem != nil {
			answers[i].Err = problem
			continue
		}
		questions = append(questions, question{
			address: address{mailbox: name, messageID: w.MessageID}, stamp: w.Stamp, parts: true, answer: &answers[i]})
	}
	if len(questions) > 0 {
		s.ask(name, questions)
	}
	if bounces != (Box{}) {
		if err := s.failures(bounces, questions); err != nil {
			return nil, fmt.Errorf("mailbox of bounces: %w", err)
		}
	}
	return answers, nil
}

func (w Wanted) problem() error {
	switch {
	case w.MessageID == "" && w.Stamp == "":
		return wrong.Field("what is wanted", "is empty", "a Message-ID, a stamp or both")
	case w.MessageID != "" && !mailtext.IsMessageID(w.MessageID):
		return wrong.Field("the Message-ID", fmt.Sprintf("is %q", mailtext.Clip(w.MessageID)), "one in its angle brackets, <left@right>")
	case w.Stamp != "" && !stampForm.MatchString(w.Stamp):
		return wrong.Field("the stamp", "cannot be in a header", "letters, digits, dots and hyphens")
	}
	return nil
}

// CheckBox logs in and checks that the mailbox exists. It writes nothing.
func (c *Connector) CheckBox(ctx context.Context, box Box) error {
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer s.leave()
	name, err := s.mailbox(box)
	if err != nil {
		return err
	}
	_, err = s.choose(name, true)
	return err
}

// mailbox is the name of a mailbox. Two that are marked for one use would leave
// it to chance which of them is read.
func (s *session) mailbox(box Box) (string, error) {
	if box.Name != "" {
		return box.Name, nil
	}
	// A server that has the extension may return the marks only on request. One without it
	// rejects the request as an error, and may return them anyway.
	asked := &imap.ListOptions{ReturnSpecialUse: s.caps.Has(imap.CapSpecialUse) && s.caps.Has(imap.CapListExtended)}
	listed, err := s.client.List("", "*", asked).Collect()
	if err != nil {
		return "", serverError(s.ctx, "list mailboxes", err)
	}
	var names []string
	for _, m := range listed {
		marked := func(a imap.MailboxAttr) bool { return strings.EqualFold(string(a), box.Use) }
		closed := func(a imap.MailboxAttr) bool {
			return strings.EqualFold(string(a), `\NoSelect`) || strings.EqualFold(string(a), `\NonExistent`)
		}
		if slices.ContainsFunc(m.Attrs, marked) && !slices.ContainsFunc(m.Attrs, closed) {
			names = append(names, m.Mailbox)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) != 1 {
		return "", fmt.Errorf("%w: %s, of %d mailboxes %d; name one in the configuration", errNoUse, mailtext.Clip(box.Use), len(listed), len(names))
	}
	return names[0], nil
}
