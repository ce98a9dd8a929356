package imap

import (
	"context"
	"errors"
	"fmt"

	"github.com/emersion/go-imap/v2"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/mailconn"
	"github.com/readback-go/readback/internal/mailtext"
)

var (
	// errOptions is wrapped by New's errors.
	errOptions = errors.New("imap options")
	// errIntent is wrapped by errors about an intent that no mailbox can hold or query. They name
	// the field and what is accepted.
	errIntent = errors.New("not for a mailbox")
	// errNoMailbox is wrapped when the mailbox does not exist. It never means absence of the
	// message.
	errNoMailbox = fmt.Errorf("%w: no such mailbox", connectors.ErrNoTarget)
	// errNoUse is wrapped when no mailbox, or more than one, is marked for the requested use. It
	// never means absence of the message.
	errNoUse = errors.New("no single mailbox is marked for this use")
	// errNoUIDPlus is wrapped when a delete is sent to a server without UIDPLUS: its EXPUNGE
	// would also remove other actors' deleted messages.
	errNoUIDPlus = errors.New("the server has no UIDPLUS")
	// errNoCondStore is wrapped when a conditional write is sent to a server or a mailbox without
	// mod-sequences.
	errNoCondStore = errors.New("the server has no CONDSTORE")
	// errUIDValidity is wrapped when the mailbox was rebuilt, which voids
	// every UID known of it.
	errUIDValidity = errors.New("the UIDVALIDITY of the mailbox has changed")
	// errMatches is wrapped when the key does not match the declared number
	// of messages.
	errMatches = errors.New("other than the declared number of messages match")
	// errChanged is wrapped when a conditional write was refused.
	errChanged = errors.New("the message has changed since it was read")
	// errNoUndo is wrapped by Invert for what cannot be undone.
	errNoUndo = errors.New("cannot be undone")
	// errUnreadable is wrapped when the server's answer to a read does not match the query.
	errUnreadable = errors.New("the answer of the server cannot be used")
)

var wrong = mailconn.Wrong{Err: errIntent}

// rejected is an error of our own about an intent: nothing left us.
func rejected(err error) error { return connectors.NotSent(err) }

// beforeSend classifies an error before the first command that changes anything: the server
// refused, or nothing was sent.
func beforeSend(err error) error {
	if connectors.FateOf(err) != connectors.FateUnknown {
		return err // it has its own kind
	}
	if no, ok := answerOf(err); ok {
		return refusal(no, err)
	}
	return connectors.NotSent(err)
}

// afterSend classifies an error of the command that changes something. A tagged NO or BAD means
// that the server did not change it; anything else (end of file, timeout, BYE, nonsense) leaves
// it unknown.
func afterSend(err error) error {
	if no, ok := answerOf(err); ok {
		return refusal(no, err)
	}
	return err
}

// answerOf is the tagged NO or BAD inside an error.
func answerOf(err error) (*imap.Error, bool) {
	var no *imap.Error
	if !errors.As(err, &no) {
		return nil, false
	}
	return no, no.Type == imap.StatusResponseTypeNo || no.Type == imap.StatusResponseTypeBad
}

func refusal(no *imap.Error, err error) error {
	if passing(no.Code) { // no code carries a time to wait
		return &connectors.Error{Fate: connectors.FateThrottled, Code: codeOf(no), Err: err}
	}
	return connectors.Refused(codeOf(no), err)
}

// passing reports whether a code means a temporary refusal.
func passing(code imap.ResponseCode) bool {
	switch code {
	case imap.ResponseCodeUnavailable, imap.ResponseCodeInUse, imap.ResponseCodeLimit, "THROTTLED":
		return true
	}
	return false
}

func codeOf(no *imap.Error) string {
	code := string(no.Type)
	if no.Code != "" {
		code += " [" + mailtext.Clip(string(no.Code)) + "]"
	}
	return code
}

// serverError names the action and keeps the cause. It names a context that ended: that is why
// the connection was closed.
func serverError(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	words := &serverWords{err}
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s: %w (%w)", doing, cause, words)
	}
	if no, ok := answerOf(err); ok && missingMailbox(no) {
		return fmt.Errorf("%s: %w: %w", doing, errNoMailbox, words)
	}
	return fmt.Errorf("%s: %w", doing, words)
}

// serverWords is an error that may contain the server's own text: truncated and made printable,
// since it is shown and recorded.
type serverWords struct{ err error }

func (e *serverWords) Error() string { return mailtext.Clip(e.err.Error()) }
func (e *serverWords) Unwrap() error { return e.err }

func missingMailbox(no *imap.Error) bool {
	return no.Code == imap.ResponseCodeNonExistent || no.Code == imap.ResponseCodeTryCreate
}
