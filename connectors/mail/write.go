package mail

import (
	"context"
	"fmt"
	"strings"

	"github.com/emersion/go-smtp"

	"github.com/readback-go/readback/connectors"
)

// Write submits the message that Prepare built, once, to all of its recipients or to none. Errors
// before the final dot are not sent, refused or throttled. After it, an answer of 5yz is a
// refusal, one of 4yz only if the options trust it, and everything else is unknown.
func (c *Connector) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	n, err := c.locate(r.Intent, r.Stamp)
	if err == nil {
		err = c.checkFresh(r.Intent, n, r.Stamp)
	}
	if err != nil {
		return connectors.Receipt{}, connectors.NotSent(err)
	}
	e, raw, err := open(r.Prepared, r.Stamp)
	if err != nil {
		return connectors.Receipt{}, connectors.NotSent(err)
	}
	s, err := c.open(ctx)
	if err != nil {
		return connectors.Receipt{}, notOpened(err)
	}
	if err := s.announce(e, raw); err != nil {
		s.leave()
		return connectors.Receipt{Reply: c.wordsOf(err)}, err
	}
	if err := s.handOver(raw); err != nil {
		s.conn.Close() // never leave: see there
		return connectors.Receipt{Reply: c.wordsOf(err)}, err
	}
	s.leave()
	return connectors.Receipt{Code: "250"}, nil
}

// announce sends the sender and the recipients. The first refused one ends it: part of the
// recipients is not what was declared. Errors leave the package, so they leave out the address of
// the copies, which must stay secret.
func (s *session) announce(e envelope, raw []byte) error {
	if err := s.client.Mail(e.From, &smtp.MailOptions{Size: int64(len(raw))}); err != nil {
		return s.beforeDot("sender "+e.From, err)
	}
	for _, to := range e.To {
		err := s.client.Rcpt(to, nil)
		no, refused := answerOf(err)
		switch {
		case err == nil:
		case refused && strings.EqualFold(to, s.o.CopyTo): // servers repeat the address
			return refusal(no, fmt.Errorf("recipient of the copies: %d", no.Code))
		case strings.EqualFold(to, s.o.CopyTo):
			return s.beforeDot("recipient of the copies", err)
		default:
			return s.beforeDot("recipient "+to, err)
		}
	}
	return nil
}

// handOver sends the message. Until the dot that ends it the server has nothing.
func (s *session) handOver(raw []byte) error {
	data, err := s.client.Data()
	if err != nil {
		return s.beforeDot("the message", err)
	}
	if _, err := data.Write(raw); err != nil {
		return s.beforeDot("the message before its end", err)
	}
	if cause := context.Cause(s.ctx); cause != nil {
		return connectors.NotSent(fmt.Errorf("the message before its end: %w", cause))
	}
	if _, err := data.CloseWithResponse(); err != nil {
		return s.afterDot(err)
	}
	return nil
}
