package imap

import (
	"context"
	"fmt"

	"github.com/emersion/go-imap/v2"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Write sends one APPEND, one change of flags, or one delete. Errors before the
// first command that changes anything are not sent, refused or throttled; after
// it, only a tagged NO or BAD is a refusal, and everything else is unknown.
func (c *Connector) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	a, err := c.locate(r.Intent, r.Stamp)
	if err != nil {
		return connectors.Receipt{}, rejected(err)
	}
	var receipt connectors.Receipt
	switch r.Intent.Write {
	case intent.Create:
		receipt, err = c.create(ctx, r, a)
	case intent.Update:
		receipt, err = c.update(ctx, r, a)
	case intent.Delete:
		receipt, err = c.delete(ctx, r, a)
	default:
		err = rejected(wrong.Field("/write", fmt.Sprintf("is %q", r.Intent.Write), "create, update or delete; a mailbox has no upsert"))
	}
	if no, ok := answerOf(err); ok {
		receipt.Reply = connectors.Reply{Code: string(no.Code), Message: no.Text}
	}
	return receipt, err
}

// Check refuses an intent that no mailbox can serve.
func (c *Connector) Check(w intent.WriteIntent) error {
	a, err := c.locate(w, w.Stamp())
	switch {
	case err != nil:
		return err
	case w.Write == intent.Update:
		_, err = changeOf(w)
		return err
	case w.Write != intent.Create:
		return nil
	}
	if err := c.checkFresh(w, a, w.Stamp()); err != nil {
		return err
	}
	_, err = contentOf(w)
	return err
}

func (c *Connector) create(ctx context.Context, r connectors.Request, a address) (connectors.Receipt, error) {
	if err := c.checkFresh(r.Intent, a, r.Stamp); err != nil {
		return connectors.Receipt{}, rejected(err)
	}
	m, err := contentOf(r.Intent)
	if err != nil {
		return connectors.Receipt{}, rejected(err)
	}
	raw, err := compose(m, a.messageID, r.Stamp)
	if err != nil {
		return connectors.Receipt{}, rejected(err)
	}
	s, err := c.open(ctx)
	if err != nil {
		return connectors.Receipt{}, beforeSend(err)
	}
	defer s.leave()
	if err := s.takes(a.mailbox, raw, m.flags); err != nil {
		return connectors.Receipt{}, beforeSend(err)
	}
	done, err := s.append(a.mailbox, append(m.flags.flags, m.flags.keywords...), raw)
	switch {
	case err != nil && !done.literal:
		return connectors.Receipt{}, beforeSend(err)
	case err != nil:
		return connectors.Receipt{}, afterSend(err)
	}
	return connectors.Receipt{Ref: done.handle.String(), Code: "OK"}, nil
}

// takes checks, before anything is sent, that the server will store the message unchanged: it
// would silently drop a keyword that it cannot store.
func (s *session) takes(mailbox string, raw []byte, f flagSet) error {
	if limit, ok := s.caps.AppendLimit(); ok && limit != nil && len(raw) > int(*limit) {
		return &imap.Error{Type: imap.StatusResponseTypeNo, Code: imap.ResponseCodeTooBig,
			Text: fmt.Sprintf("the message has %d bytes, the server takes %d", len(raw), *limit)}
	}
	if len(f.keywords) == 0 {
		return nil
	}
	chosen, err := s.choose(mailbox, false)
	if err != nil {
		return err
	}
	return keeps(chosen, f.keywords)
}

// keeps reports whether the mailbox keeps flags after the session. A server that lists none is
// assumed to keep all.
func keeps(chosen *imap.SelectData, flags []imap.Flag) error {
	if len(chosen.PermanentFlags) == 0 || hasFlag(chosen.PermanentFlags, imap.FlagWildcard) {
		return nil
	}
	if lost := without(flags, chosen.PermanentFlags); len(lost) > 0 {
		return &imap.Error{Type: imap.StatusResponseTypeNo, Code: imap.ResponseCodeCannot,
			Text: fmt.Sprintf("the mailbox does not keep %q (PERMANENTFLAGS)", lost)}
	}
	return nil
}
