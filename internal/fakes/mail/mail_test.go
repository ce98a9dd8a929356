package mail_test

import (
	"bytes"
	"fmt"
	"net/smtp"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/fakes/mail"
	"github.com/readback-go/readback/readbacktest/fault"
)

const letter = "Subject: hello\r\nMessage-ID: <1@x>\r\nX-Readback-Stamp: s\r\nCc: c@x,\r\n d@x\r\n\r\n.dot\r\nSubject: body\r\n"

// send is a plain client, which trusts every answer.
func send(t *testing.T, s *mail.Server) error {
	t.Helper()
	address, password := s.Account()
	auth := smtp.PlainAuth("", address, password, "127.0.0.1")
	return smtp.SendMail(s.Addr(), auth, address, []string{"bob@example.org", address}, []byte(letter))
}

func TestAnswersAndEffectsOfFaults(t *testing.T) {
	for kind, tt := range map[fault.Kind]struct {
		yes                       bool // the client gets a yes
		received, accepted, filed int
		reason                    string
	}{
		"":                           {true, 1, 1, 1, "an honest server"},
		fault.Unreachable:            {false, 0, 0, 0, "no server is there"},
		mail.RefusedSender:           {false, 0, 0, 0, "an honest no"},
		mail.RefusedRcpt:             {false, 0, 0, 0, "an honest no"},
		mail.Greylisted:              {false, 0, 0, 0, "an honest not now"},
		mail.RefusedData:             {false, 0, 0, 0, "an honest no"},
		mail.CutBeforeDot:            {false, 0, 0, 0, "it never came in whole"},
		fault.Refused:                {false, 1, 0, 0, "an honest no"},
		fault.Throttled:              {false, 1, 0, 0, "an honest not now"},
		fault.DroppedBefore:          {false, 1, 0, 0, "not done"},
		fault.LostAnswer:             {false, 1, 1, 1, "done, unheard"},
		fault.BadGateway:             {false, 1, 1, 1, "done, and no word of it"},
		mail.PutOff:                  {false, 1, 1, 1, "done, and called not now"},
		mail.ShutDown:                {false, 1, 1, 1, "done, and called not now"},
		fault.PhantomSuccess:         {true, 1, 0, 0, "a lie"},
		fault.DuplicateBehindOurBack: {true, 1, 1, 2, "no client requested the second"},
		fault.Rollback:               {true, 1, 1, 0, "done, and gone"},
		fault.NormalisedField:        {true, 1, 1, 1, "with another subject"},
		fault.DroppedField:           {true, 1, 1, 1, "without a header"},
		mail.OtherMessageID:          {true, 1, 1, 1, "with another Message-ID"},
		mail.WithoutStamp:            {true, 1, 1, 1, "without a header"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			s := mail.Start(t, mail.Options{})
			s.SetFault(kind, 1)
			if err := send(t, s); (err == nil) != tt.yes {
				t.Errorf("the client hears %v, want yes: %v (%s)", err, tt.yes, tt.reason)
			}
			n, err := s.Mailbox.Count(s.Sent())
			inbox, errInbox := s.Mailbox.Count("INBOX")
			if err != nil || errInbox != nil || n != tt.filed || inbox != tt.filed || len(s.Received()) != tt.received || len(s.Accepted()) != tt.accepted {
				t.Errorf("%d came in, %d taken over, %d filed, %d in INBOX, %v %v; want %d, %d, %d and %d: %s",
					len(s.Received()), len(s.Accepted()), n, inbox, err, errInbox, tt.received, tt.accepted, tt.filed, tt.filed, tt.reason)
			}
			if left := s.Left(kind); left != 0 && kind != "" {
				t.Errorf("the fault has still to show %d times", left)
			}
			if err := send(t, s); err != nil {
				t.Errorf("after the fault: %v, want an honest server", err)
			}
		})
	}
}

// TestKeptToTheByte: what came in is what was sent, whatever was made of it.
func TestKeptToTheByte(t *testing.T) {
	s := mail.Start(t, mail.Options{})
	for _, v := range []fault.Kind{fault.NormalisedField, fault.DroppedField, mail.WithoutStamp, mail.OtherMessageID} {
		s.SetFault(v, 1)
	}
	if err := send(t, s); err != nil {
		t.Fatal(err)
	}
	address, _ := s.Account()
	got := s.Received()[0]
	if string(got.Raw) != letter || got.ID() != "<1@x>" || got.From != address || !slices.Equal(got.To, []string{"bob@example.org", address}) {
		t.Errorf("came in: %+v\n%q\nwant\n%q", got, got.Raw, letter)
	}
	messages, err := s.Mailbox.Messages(s.Sent())
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d filed, %v", len(messages), err)
	}
	want := "SUBJECT: HELLO\r\nMessage-ID: <0102018f-4711@mailtest.invalid>\r\n\r\n.dot\r\nSubject: body\r\n"
	if raw := messages[0].Raw; string(raw) != want {
		t.Errorf("filed is\n%q\nwant\n%q", raw, want)
	}
	if inbox, err := s.Mailbox.Messages("INBOX"); err != nil || len(inbox) != 1 || !bytes.Contains(inbox[0].Raw, []byte("Return-Path: <"+address+">")) {
		t.Errorf("INBOX has %d, %v; want one that says how it came", len(inbox), err)
	}
}

func TestOnlyTheClientSends(t *testing.T) {
	s := mail.Start(t, mail.Options{})
	if err := smtp.SendMail(s.Addr(), nil, "a@x", []string{"b@x"}, []byte(letter)); err == nil || len(s.Accepted()) != 0 {
		t.Errorf("without a login: %v, %d taken over; want an error and none", err, len(s.Accepted()))
	}
}

// without is a machine that has no Postfix.
type without struct {
	mail.TB
	skipped, failed string
}

func (w *without) Helper()                   {}
func (w *without) Skipf(f string, a ...any)  { w.skipped = fmt.Sprintf(f, a...); panic(w) }
func (w *without) Fatalf(f string, a ...any) { w.failed = fmt.Sprintf(f, a...); panic(w) }

func TestWithoutPostfix(t *testing.T) {
	for strict, wantSkip := range map[string]bool{"": true, "1": false} {
		t.Run("strict="+strict, func(t *testing.T) {
			t.Setenv("READBACK_STRICT", strict)
			mail.HidePostfix(t)
			w := &without{}
			func() {
				defer func() { _ = recover() }()
				mail.StartPostfix(w)
			}()
			count := w.skipped + w.failed
			if (w.skipped != "") != wantSkip || (w.failed == "") != wantSkip || !strings.Contains(count, "Debian: postfix") {
				t.Errorf("skipped %q, failed %q; want a skip: %v, and what to install", w.skipped, w.failed, wantSkip)
			}
		})
	}
}
