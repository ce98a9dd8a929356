package mail

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/emersion/go-smtp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/mailconn"
	"github.com/readback-go/readback/internal/mailtext"
)

var (
	// errOptions is wrapped by New's errors.
	errOptions = errors.New("mail options")
	// errIntent is wrapped by errors about an intent that cannot be sent or queried. They name
	// the field and what is accepted.
	errIntent = errors.New("not for a mail")
	// errPrepared is wrapped when what the ledger kept is missing or is not
	// the message of this write. Nothing is sent then.
	errPrepared = errors.New("what was prepared is not this mail")
	// errNoStartTLS is wrapped when the server does not offer the protection that the options
	// require. No password was sent.
	errNoStartTLS = errors.New("the server offers no STARTTLS")
	// errNoAuth is wrapped when the server offers no login that we know.
	errNoAuth = errors.New("the server offers neither PLAIN nor LOGIN")
	// errRefusedLogin is wrapped when the server refused the login.
	errRefusedLogin = errors.New("the server refused the login")
	// errTooMuch is wrapped when the server talks without end.
	errTooMuch = errors.New("the server says more than can be read")
	// errNoAnswer is wrapped when the whole message was sent and no answer came that means yes or
	// no.
	errNoAnswer = errors.New("no answer to the whole message")
	// errPutOff is wrapped when the answer to the whole message was "not now", which some servers
	// send after accepting it; see Options.TrustDeferral.
	errPutOff = errors.New("put off after the whole message, which may have been taken over all the same")
)

var wrong = mailconn.Wrong{Err: errIntent}

// answerOf is the server's own refusal: 4yz or 5yz. Any other number in its place is no answer.
func answerOf(err error) (*smtp.SMTPError, bool) {
	var no *smtp.SMTPError
	if !errors.As(err, &no) {
		return nil, false
	}
	return no, no.Code >= 400 && no.Code < 600
}

// beforeDot classifies an error of a transaction whose message was not sent whole: a server that
// follows RFC 5321 (4.1.1.4) has stored nothing.
func (s *session) beforeDot(doing string, err error) error {
	err = s.fail(doing, err)
	if no, ok := answerOf(err); ok {
		return refusal(no, err)
	}
	return connectors.NotSent(err)
}

// afterDot classifies an error of the answer to the whole message. 5yz means that the server has
// not accepted it (RFC 5321, 4.2.5). 4yz should mean the same, but a server that forwards the
// message while we wait also sends it when it does not know the result; it is trusted only if the
// options say so. 421 may answer any command and is never trusted. Any other error leaves the
// result unknown.
func (s *session) afterDot(err error) error {
	err = s.fail("the message", err)
	no, ok := answerOf(err)
	switch {
	case !ok:
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	case no.Code < 500 && (!s.o.TrustDeferral || no.Code == shuttingDown):
		return fmt.Errorf("%w: %w", errPutOff, err)
	}
	return refusal(no, err)
}

// notOpened classifies why there is no session: no message was begun.
func notOpened(err error) error {
	var login *refusedLogin
	if errors.As(err, &login) && login.code >= 500 {
		return connectors.LoginRefused(strconv.Itoa(login.code), err)
	}
	return connectors.NotSent(err)
}

// refusedLogin has only the code: the text may contain the password.
type refusedLogin struct{ code int }

func (e *refusedLogin) Error() string { return fmt.Sprintf("log in: %v (%d)", errRefusedLogin, e.code) }

func (e *refusedLogin) Unwrap() error { return errRefusedLogin }

// shuttingDown may answer any command, even before the server reads it.
const shuttingDown = 421

// refusal distinguishes "not now" from "no". No answer has a time to wait.
func refusal(no *smtp.SMTPError, err error) error {
	if no.Code < 500 {
		return &connectors.Error{Fate: connectors.FateThrottled, Code: strconv.Itoa(no.Code), Err: err}
	}
	return connectors.Refused(strconv.Itoa(no.Code), err)
}

// wordsOf is the server's text about a message that it did not accept. Its text about the login
// or the recipient of the copies is not in the error.
func (c *Connector) wordsOf(err error) connectors.Reply {
	no, ok := answerOf(err)
	if !ok {
		return connectors.Reply{}
	}
	words := connectors.Reply{Message: (&serverWords{no, c.o.CopyTo}).Error()}
	if code := no.EnhancedCode; code != smtp.NoEnhancedCode && code != smtp.EnhancedCodeNotSet {
		words.Code = fmt.Sprintf("%d.%d.%d", code[0], code[1], code[2])
	}
	return words
}

// fail names the action and keeps the cause. It names a context that ended: that is why the
// connection was closed.
func (s *session) fail(doing string, err error) error {
	words := &serverWords{err, s.o.CopyTo}
	if cause := context.Cause(s.ctx); cause != nil {
		return fmt.Errorf("%s: %w (%w)", doing, cause, words)
	}
	return fmt.Errorf("%s: %w", doing, words)
}

// serverWords is an error that may contain the server's own text: truncated and made printable,
// since it is shown and recorded. Errors leave the package, so the address of the copies, which
// must stay secret, is removed.
type serverWords struct {
	err    error
	secret string
}

func (e *serverWords) Error() string {
	text := e.err.Error()
	if no, ok := answerOf(e.err); ok {
		text = fmt.Sprintf("%d %s", no.Code, no.Message)
	}
	if e.secret != "" {
		text = regexp.MustCompile("(?i)"+regexp.QuoteMeta(e.secret)).ReplaceAllLiteralString(text, "the address of the copies")
	}
	return mailtext.Clip(text)
}

func (e *serverWords) Unwrap() error { return e.err }
