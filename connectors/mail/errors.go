package mail

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/emersion/go-smtp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/mailtext"
)

var (
	// ErrOptions is wrapped by New's errors.
	ErrOptions = errors.New("mail options")
	// ErrIntent is wrapped by errors about an intent that cannot be sent or
	// looked up. They name the field and what would be right.
	ErrIntent = errors.New("not for a mail")
	// ErrPrepared is wrapped when what the ledger kept is missing or is not
	// the message of this write. Nothing is sent then.
	ErrPrepared = errors.New("what was prepared is not this mail")
	// ErrNoStartTLS is wrapped when the server does not offer the protection
	// that the options ask for. No password was sent.
	ErrNoStartTLS = errors.New("the server offers no STARTTLS")
	// ErrNoAuth is wrapped when the server offers no login that we know.
	ErrNoAuth = errors.New("the server offers neither PLAIN nor LOGIN")
	// ErrRefusedLogin is wrapped when the server refused the login.
	ErrRefusedLogin = errors.New("the server refused the login")
	// ErrTooMuch is wrapped when the server talks without end.
	ErrTooMuch = errors.New("the server says more than can be read")
	// ErrNoAnswer is wrapped when the message was handed over whole and no
	// answer came that means yes or no.
	ErrNoAnswer = errors.New("no answer to the whole message")
	// ErrPutOff is wrapped when the answer to the whole message was not now,
	// which not every server says truly; see Options.TrustDeferral.
	ErrPutOff = errors.New("put off after the whole message, which may have been taken over all the same")
)

// unusable is an error about one field of an intent.
func unusable(path, problem, want string) error {
	return connectors.WrongField(path, fmt.Errorf("%w: %s %s; want %s", ErrIntent, path, problem, want))
}

// unfit is an error about the value of a field, which takes others, such as the
// example.
func unfit(path, problem, want string, example any) error {
	return connectors.WrongValue(path, example, fmt.Errorf("%w: %s %s; want %s", ErrIntent, path, problem, want))
}

// problemAt is the error about the field at path; nil where there is no problem.
func problemAt(path string, p *mailtext.Problem) error {
	if p == nil {
		return nil
	}
	if p.Value {
		return unfit(path+p.At, p.Is, p.Want, p.Example)
	}
	return unusable(path+p.At, p.Is, p.Want)
}

// answerOf is the server's own no: 4yz or 5yz. Any other number in the place of
// an answer says nothing.
func answerOf(err error) (*smtp.SMTPError, bool) {
	var no *smtp.SMTPError
	if !errors.As(err, &no) {
		return nil, false
	}
	return no, no.Code >= 400 && no.Code < 600
}

// beforeDot classifies what went wrong in a transaction whose message was not
// handed over whole: a server that keeps to RFC 5321 (4.1.1.4) has nothing then.
func (s *session) beforeDot(doing string, err error) error {
	err = s.said(doing, err)
	if no, ok := answerOf(err); ok {
		return refusal(no, err)
	}
	return connectors.NotSent(err)
}

// afterDot classifies what went wrong with the answer to the whole message. 5yz
// is the server's word that it has not taken it over (RFC 5321, 4.2.5). 4yz
// should be, but one that hands the message on while we wait says so of a
// message that it has lost sight of; it is believed where the options say so,
// and 421, which answers any command, nowhere. Anything else leaves it open.
func (s *session) afterDot(err error) error {
	err = s.said("the message", err)
	no, ok := answerOf(err)
	switch {
	case !ok:
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	case no.Code < 500 && (!s.o.TrustDeferral || no.Code == shuttingDown):
		return fmt.Errorf("%w: %w", ErrPutOff, err)
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

// refusedLogin has the code alone: the words may hold the password.
type refusedLogin struct{ code int }

func (e *refusedLogin) Error() string { return fmt.Sprintf("log in: %v (%d)", ErrRefusedLogin, e.code) }

func (e *refusedLogin) Unwrap() error { return ErrRefusedLogin }

// shuttingDown may answer any command, before it is read too.
const shuttingDown = 421

// refusal tells not now from no. No answer carries a time to wait.
func refusal(no *smtp.SMTPError, err error) error {
	if no.Code < 500 {
		return &connectors.Error{Fate: connectors.FateThrottled, Code: strconv.Itoa(no.Code), Err: err}
	}
	return connectors.Refused(strconv.Itoa(no.Code), err)
}

// wordsOf is what the server said of a message that it did not take. What it said of
// the login or of the recipient of the copies is not in the error.
func (c *Connector) wordsOf(err error) connectors.Said {
	no, ok := answerOf(err)
	if !ok {
		return connectors.Said{}
	}
	said := connectors.Said{Message: (&serverWords{no, c.o.CopyTo}).Error()}
	if code := no.EnhancedCode; code != smtp.NoEnhancedCode && code != smtp.EnhancedCodeNotSet {
		said.Code = fmt.Sprintf("%d.%d.%d", code[0], code[1], code[2])
	}
	return said
}

// said says what was being done and keeps the cause. A context that ended is
// named: it is why the connection was closed.
func (s *session) said(doing string, err error) error {
	words := &serverWords{err, s.o.CopyTo}
	if cause := context.Cause(s.ctx); cause != nil {
		return fmt.Errorf("%s: %w (%w)", doing, cause, words)
	}
	return fmt.Errorf("%s: %w", doing, words)
}

// serverWords is an error that may hold the server's own words: cut short and
// made printable, since they are shown and recorded. Errors go far, so the
// address of the copies, which nobody should know, is taken out.
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
