package mail_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/intent"
	fakemail "github.com/readback-go/readback/internal/fakes/mail"
)

const password = "correct horse"

// scripted is a connector whose server plays a script.
func scripted(t *testing.T, s *fakemail.Script, change func(o *mail.Options)) *mail.Connector {
	t.Helper()
	o := mail.Options{
		Addr: "127.0.0.1:25", Dial: s.Dial, Security: mail.Insecure, From: "alice@example.org", Account: "alice",
		Username: "alice", Password: func(context.Context) (string, error) { return password, nil },
		Proof: mail.Filed, IMAP: imap.Options{Addr: "127.0.0.1:143", Security: imap.Insecure},
	}
	if change != nil {
		change(&o)
	}
	return connect(t, o)
}

// letter is a good intent to two recipients.
func letter() intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: "acme", Workflow: "run-1", Tool: "send", Destination: "mail", Kind: mail.KindMessage, Write: intent.Create,
		Key:    intent.Fields{"account": "alice"},
		Expect: intent.Fields{"to": []any{"bob@example.org", "chloe@example.org"}, "subject": "Hello", "body": "Hi.\n"},
	}
}

// prepared is a request as the engine makes it.
func prepared(t *testing.T, c *mail.Connector, w intent.WriteIntent) connectors.Request {
	t.Helper()
	r := connectors.Request{Intent: w, Stamp: w.Stamp(), Attempt: 1}
	built, err := c.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	r.Prepared = built
	return r
}

// The steps of a submission that succeeds.
func steps(last ...fakemail.Step) []fakemail.Step {
	return append([]fakemail.Step{
		{Reply: "220 mx ESMTP\r\n"},
		{Expect: "EHLO localhost", Reply: "250-mx\r\n250-SIZE 10000000\r\n250 AUTH LOGIN PLAIN\r\n"},
		{Expect: "AUTH PLAIN", Reply: "235 2.7.0 welcome\r\n"},
		{Expect: "MAIL FROM:<alice@example.org>", Reply: "250 ok\r\n"},
		{Expect: "RCPT TO:<bob@example.org>", Reply: "250 ok\r\n"},
		{Expect: "RCPT TO:<chloe@example.org>", Reply: "250 ok\r\n"},
		{Expect: "DATA", Reply: "354 go on\r\n"},
	}, last...)
}

// instead returns the steps up to one, which gets another answer, then QUIT.
func instead(n int, says string) []fakemail.Step {
	all := slices.Clone(steps()[:n+1])
	all[n].Reply = says
	return append(all, fakemail.Step{Expect: "QUIT", Reply: "221 bye\r\n"})
}

func cutAt(n int) []fakemail.Step {
	all := slices.Clone(steps()[:n+1])
	all[n].Reply = ""
	return all
}

func dot(says string) []fakemail.Step {
	return steps(fakemail.Step{Expect: ".", Reply: says}, fakemail.Step{Expect: "QUIT", Reply: "221 bye\r\n"})
}

const (
	answered  = connectors.FateAnswered
	notSent   = connectors.FateNotSent
	refused   = connectors.FateRefused
	throttled = connectors.FateThrottled
	unknown   = connectors.FateUnknown
)

type answer struct {
	steps  []fakemail.Step
	fate   connectors.Fate
	code   string
	says   string // is in the error
	reason string
}

func answers() map[string]answer {
	silence := fakemail.Step{}
	return map[string]answer{
		"yes":                      {dot("250 2.0.0 queued\r\n"), answered, "", "", "it was taken over"},
		"greeting/no":              {[]fakemail.Step{{Reply: "554 not you\r\n"}}, notSent, "", "554", "no mail was begun"},
		"greeting/not now":         {[]fakemail.Step{{Reply: "421 too busy\r\n"}}, notSent, "", "421", "no mail was begun"},
		"greeting/cut":             {[]fakemail.Step{{Expect: "x"}}, notSent, "", "greeting", "no mail was begun"},
		"greeting/silence":         {[]fakemail.Step{silence}, notSent, "", "deadline", "no mail was begun"},
		"login/refused":            {append(slices.Clone(steps()[:2]), fakemail.Step{Expect: "AUTH", Reply: "535 wrong: " + password + "\r\n"}), connectors.FateLogin, "535", "535", "the account is at fault and not the message; the words of the server are kept out"},
		"login/not now":            {append(slices.Clone(steps()[:2]), fakemail.Step{Expect: "AUTH", Reply: "454 later: " + password + "\r\n"}), notSent, "", "454", "no mail was begun"},
		"login/none":               {append(slices.Clone(steps()[:1]), fakemail.Step{Expect: "EHLO", Reply: "250-mx\r\n250 AUTH CRAM-MD5\r\n"}), notSent, "", "PLAIN", "we know no such login"},
		"sender/no":                {instead(3, "550 not from you\r\n"), refused, "550", "sender alice@example.org", "the server's word"},
		"sender/not now":           {instead(3, "452 no room\r\n"), throttled, "452", "452", "as the server answers"},
		"sender/cut":               {cutAt(3), notSent, "", "sender", "no message was begun"},
		"second recipient/no":      {instead(5, "550 5.1.1 nobody\r\n"), refused, "550", "recipient chloe@example.org", "none of them gets it then"},
		"second recipient/not now": {instead(5, "450 greylisted\r\n"), throttled, "450", "recipient chloe@example.org", "none of them gets it then"},
		"second recipient/silence": {append(slices.Clone(steps()[:5]), fakemail.Step{Expect: "RCPT"}, silence), notSent, "", "deadline", "no message was begun"},
		"data/no":                  {instead(6, "554 no\r\n"), refused, "554", "554", "the server's word"},
		"data/not now":             {instead(6, "451 not now\r\n"), throttled, "451", "451", "the server's word"},
		"data/yes at once":         {steps()[:6:6], notSent, "", "the message", "no message was begun"},
		"data/nonsense":            {instead(6, "250 thanks\r\n"), notSent, "", "", "it did not ask for the message"},
		"short message/cut":        {steps(fakemail.Step{After: 50}), unknown, "", "no answer", "the message and its dot go in one packet: how much of it arrived is unknown"},
		"dot/no":                   {dot("554 5.7.1 spam\r\n"), refused, "554", "spam", "the server's word"},
		"dot/too big":              {dot("552 too big\r\n"), refused, "552", "552", "the server's word"},
		"dot/not now":              {dot("451 4.3.0 later\r\n"), unknown, "", "later", "a relay says so of what it has handed on"},
		"dot/shutting down":        {dot("421 bye\r\n"), unknown, "", "421", "it answers any command"},
		"dot/cut":                  {steps(fakemail.Step{Expect: "."}), unknown, "", "no answer", "it has the whole message"},
		"dot/half a yes":           {steps(fakemail.Step{Expect: ".", Reply: "250-queued\r\n"}), unknown, "", "no answer", "the answer never ended"},
		"dot/silence":              {steps(fakemail.Step{Expect: "."}, silence), unknown, "", "deadline", "it has the whole message"},
		"dot/another yes":          {dot("251 will forward\r\n"), unknown, "", "no answer", "no answer that SMTP has there"},
		"dot/go on":                {dot("354 go on\r\n"), unknown, "", "no answer", "no answer that SMTP has there"},
		"dot/600":                  {dot("650 what\r\n"), unknown, "", "no answer", "no answer that SMTP has"},
		"dot/nonsense":             {dot("okay\r\n"), unknown, "", "no answer", "no answer at all"},
		"goodbye/silence":          {steps(fakemail.Step{Expect: ".", Reply: "250 ok\r\n"}, silence), answered, "", "", "what comes after the yes is nothing"},
		"goodbye/no":               {steps(fakemail.Step{Expect: ".", Reply: "250 ok\r\n"}, fakemail.Step{Expect: "QUIT", Reply: "500 no\r\n"}), answered, "", "", "what comes after the yes is nothing"},
		"goodbye/cut":              {steps(fakemail.Step{Expect: ".", Reply: "250 ok\r\n"}), answered, "", "", "what comes after the yes is nothing"},
	}
}

// TestAnswers: what each answer, at each step, means for the mail.
func TestAnswers(t *testing.T) {
	for name, tt := range answers() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tt.run(t) })
		})
	}
}

func (tt answer) run(t *testing.T) {
	s := &fakemail.Script{Steps: tt.steps}
	c := scripted(t, s, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, began := prepared(t, c, letter()), time.Now()
	receipt, err := c.Write(ctx, r)
	if no := tt.fate == refused && !strings.Contains(receipt.Reply.Message, tt.code) || strings.Contains(receipt.Reply.Message, password); no {
		t.Errorf("the server's own words are %+v, want %q in them, and no password", receipt.Reply, tt.code)
	}
	if took := time.Since(began); err == nil && took > 5*time.Second { // of the bubble's time
		t.Errorf("after the yes it waits for %v", took)
	}
	if got := connectors.FateOf(err); got != tt.fate {
		t.Errorf("the write says %q (%v), want %q: %s", got, err, tt.fate, tt.reason)
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if !strings.Contains(text, tt.says) || strings.Contains(text, password) {
		t.Errorf("the error is %q, want %q in it, and no password", text, tt.says)
	}
	var e *connectors.Error
	if errors.As(err, &e) && (e.Code != tt.code || e.RetryAfter != 0 || e.Conflict) {
		t.Errorf("code %q, wait %v, conflict %v; want code %q and neither", e.Code, e.RetryAfter, e.Conflict, tt.code)
	}
	if unknown := errors.Is(err, mail.ErrNoAnswer) || errors.Is(err, mail.ErrPutOff); unknown != (tt.fate == connectors.FateUnknown) {
		t.Errorf("the error says that there was no answer: %v", unknown)
	}
	if tt.fate != notSent && s.Wrong() != nil {
		t.Error(s.Wrong())
	}
	dots := slices.Contains(s.Received(), ".")
	if want := slices.ContainsFunc(tt.steps, func(step fakemail.Step) bool { return step.Expect == "." }); dots != want {
		t.Errorf("the server received %q; a whole message among it: %v, want %v", s.Received(), dots, want)
	}
}

// long is a letter that does not fit one packet.
func long() intent.WriteIntent {
	w := letter()
	w.Expect["body"] = strings.Repeat("one line of many\n", 20000)
	return w
}

// TestCutLongMessage: where the connection breaks before the dot was written,
// the server has nothing.
func TestCutLongMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := scripted(t, &fakemail.Script{Steps: steps(fakemail.Step{After: 50000})}, nil)
		_, err := c.Write(t.Context(), prepared(t, c, long()))
		if got := connectors.FateOf(err); got != notSent || !strings.Contains(err.Error(), "before its end") {
			t.Errorf("the write says %q (%v), want not sent", got, err)
		}
	})
}

// TestNoDotAfterHalfAMessage: go-smtp ends an open message before any next
// command, and the server would take the half for the whole. Here the context
// ends during the message, and its socket is closed late.
func TestNoDotAfterHalfAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakemail.Script{Steps: steps(fakemail.Step{Expect: "Date: "}, fakemail.Step{})}
		ctx, cancel := context.WithCancel(t.Context())
		c := scripted(t, s, func(o *mail.Options) {
			o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := s.Dial(ctx, network, addr)
				return &slowlyClosed{Conn: conn, begun: cancel}, err
			}
		})
		_, err := c.Write(ctx, prepared(t, c, long()))
		synctest.Wait()
		if got := connectors.FateOf(err); got != notSent || !errors.Is(err, context.Canceled) {
			t.Errorf("the write says %q (%v), want not sent, and why", got, err)
		}
		received := s.Received()
		if slices.Contains(received, ".") || slices.Contains(received, "QUIT") || !slices.Contains(received, "one line of many") {
			t.Errorf("the server received %d lines, at last %q; want no dot and nothing after the message", len(received), received[len(received)-1])
		}
	})
}

// slowlyClosed is a connection whose first close comes late, and that reports when a message is
// sent over it.
type slowlyClosed struct {
	net.Conn
	begun  func()
	closes atomic.Int32
}

func (c *slowlyClosed) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if bytes.Contains(p, []byte("one line of many")) {
		c.begun()
	}
	return n, err
}

func (c *slowlyClosed) Close() error {
	if c.closes.Add(1) == 1 {
		return nil
	}
	return c.Conn.Close()
}

// TestAddressOfCopiesIsNotRepeated: servers name the address that they refuse.
func TestAddressOfCopiesIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const address = "secret@example.org"
		s := &fakemail.Script{Steps: append(slices.Clone(steps()[:6]),
			fakemail.Step{Expect: "RCPT TO:<" + address + ">", Reply: "550 5.1.1 <" + address + "> unknown\r\n"}, fakemail.Step{Expect: "QUIT"})}
		c := scripted(t, s, func(o *mail.Options) { o.Proof, o.CopyTo = mail.Copied, address })
		receipt, err := c.Write(t.Context(), prepared(t, c, letter()))
		if connectors.FateOf(err) != refused || strings.Contains(err.Error()+receipt.Reply.Message, address) || !strings.Contains(err.Error(), "550") {
			t.Errorf("the write says %v; want a refusal, its code, and not the address", err)
		}
	})
}

// TestEndlessAnswer: a server that never stops talking is hung up on.
func TestEndlessAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakemail.Script{Steps: []fakemail.Step{{Reply: strings.Repeat("220-still here\r\n", 200000)}}}
		c := scripted(t, s, nil)
		_, err := c.Write(t.Context(), prepared(t, c, letter()))
		if connectors.FateOf(err) != notSent || !errors.Is(err, mail.ErrTooMuch) {
			t.Errorf("the write says %v, want not sent, and that it was too much", err)
		}
	})
}

// TestNoStartTLS: without the required protection nothing confidential is sent.
func TestNoStartTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakemail.Script{Steps: steps()}
		c := scripted(t, s, func(o *mail.Options) { o.Security = mail.StartTLS })
		_, err := c.Write(t.Context(), prepared(t, c, letter()))
		if connectors.FateOf(err) != notSent || !errors.Is(err, mail.ErrNoStartTLS) {
			t.Errorf("the write says %v, want not sent, and why", err)
		}
		if received := s.Received(); len(received) != 1 || !strings.HasPrefix(received[0], "EHLO") {
			t.Errorf("the server received %q, want EHLO alone", received)
		}
	})
}
