package mail_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/intent"
	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
	fakemail "github.com/readback-go/readback/internal/fakes/mail"
	"github.com/readback-go/readback/readbacktest/fault"
)

// options are right for an account; Proof is Filed.
func options(s *fakemail.Server) mail.Options {
	address, password := s.Account()
	secret := func(context.Context) (string, error) { return password, nil }
	username, _ := s.Mailbox.Account()
	return mail.Options{
		Addr: s.Addr(), Dial: s.Dial, Security: mail.Insecure, Username: address, Password: secret,
		Account: address, From: "Alice A <" + address + ">", Proof: mail.Filed,
		IMAP: imap.Options{Addr: s.Mailbox.Addr(), Dial: s.Mailbox.Dial, Security: imap.Insecure, Username: username, Password: secret},
	}
}

// copied are options with a copy to the account itself.
func copied(s *fakemail.Server) mail.Options {
	o := options(s)
	o.Proof, o.CopyTo = mail.Copied, o.Username
	return o
}

func connect(t *testing.T, o mail.Options) *mail.Connector {
	t.Helper()
	c, err := mail.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The suite that every connector passes: in memory, in fake time, for both
// kinds and both proofs.
func TestConformanceInMemory(t *testing.T) {
	for name, c := range map[string]struct {
		kind    string
		options func(s *fakemail.Server) mail.Options
		mailbox string
	}{
		"filed/message":       {mail.KindMessage, options, "Gesendet"},
		"filed/named_message": {mail.KindNamed, options, "Gesendet"},
		"copied/message":      {mail.KindMessage, copied, "INBOX"},
	} {
		t.Run(name, func(t *testing.T) {
			connectortest.Run(t, connectortest.Harness{
				Open: func(t *testing.T) *connectortest.Fixture {
					s := fakemail.Start(t, fakemail.Options{InProcess: true})
					return fixture(t, bench{t, s, c.kind, c.mailbox, false}, c.options(s))
				},
				Writes:   []intent.WriteType{intent.Create},
				Lacks:    lacks(c.kind),
				Variants: variants(),
			})
		})
	}
}

func lacks(kind string) map[string]string {
	l := map[string]string{
		string(fault.Throttled):      "no answer of SMTP carries a time to wait; TestAnswers has the rest",
		connectortest.LacksNullField: "a header is there or not; mail has no null",
		connectortest.LacksChange:    "a mail that was sent is not changed, and has no versions",
	}
	if kind == mail.KindMessage {
		const made = "the Message-ID is made from the stamp: no other actor's mail has it, or nearly it"
		l[connectortest.LacksSeed], l[connectortest.LacksNear] = made, made
	}
	return l
}

func variants() map[fault.Kind][]string {
	return map[fault.Kind][]string{
		fault.LostAnswer:     {string(fault.LostAnswer), string(fault.BadGateway)},
		fault.Refused:        {""},
		fault.UnreadableRead: {string(fault.UnreadableRead), string(fakeimap.GarbledRead), string(fakeimap.CutRead)},
	}
}

// bench is the account as the suite sees it, read without the connector.
type bench struct {
	t       *testing.T
	s       *fakemail.Server
	kind    string
	mailbox string
	queues  bool // what is taken over comes into the mailbox later
}

func fixture(t *testing.T, b bench, o mail.Options) *connectortest.Fixture {
	seen := new(searches)
	seen.through(&o.IMAP)
	c := connect(t, o)
	return &connectortest.Fixture{
		Connector: c,
		Profile:   c.Profiles()[b.kind],
		Intent:    b.numbered,
		Near:      b.near,
		Set:       b.set,
		Seed:      b.seed,
		Records:   b.records,
		Effects:   b.effects,
		Sends:     func() int { return len(b.s.Received()) },
		Elsewhere: func() (int, int) { return b.s.Mailbox.Sends(), int(seen.n.Load()) },
		Same:      same,
	}
}

// numbered is a good intent on mail n.
func (b bench) numbered(w intent.WriteType, n int) intent.WriteIntent {
	address, _ := b.s.Account()
	in := intent.WriteIntent{
		Kind: b.kind, Write: w,
		Key: intent.Fields{"account": address, "message_id": fmt.Sprintf("<message.%d@example.org>", n)},
		Expect: intent.Fields{
			"from": "Alice A <" + address + ">", "to": []any{"bob@example.org"}, "cc": []any{"Chloé <chloe@example.com>"},
			"subject": fmt.Sprintf("Message %d", n), "body": "Grüße,\n.\n..hidden\nAlice\n",
		},
		Payload: intent.Fields{"bcc": []any{"dora@example.org"}},
	}
	if b.kind == mail.KindMessage { // the Message-ID is that of the create's stamp
		in.Tenant, in.Workflow, in.Tool, in.Call = "connectortest", "w", "create", n
		in.Key["message_id"] = "<" + in.Stamp() + "@example.org>"
	}
	return in
}

// near is mails whose Message-IDs contain that of n, or nearly are it.
func (b bench) near(n int) []intent.WriteIntent {
	var all []intent.WriteIntent
	for _, id := range []string{
		fmt.Sprintf("<Message.%d@example.org>", n), fmt.Sprintf("<message.%d1@example.org>", n),
		fmt.Sprintf("<message.%d@example.org.uk>", n), fmt.Sprintf("<a.message.%d@example.org>", n),
	} {
		in := b.numbered(intent.Create, n)
		in.Key["message_id"] = id
		all = append(all, in)
	}
	return all
}

var ownFaults = map[fault.Kind]fault.Kind{
	fault.LostAnswer: fault.LostAnswer, fault.DroppedBefore: fault.DroppedBefore,
	fault.BadGateway: fault.BadGateway, fault.LateCommit: fault.LateCommit,
	fault.PhantomSuccess: fault.PhantomSuccess, fault.DroppedField: fault.DroppedField,
	fault.NormalisedField: fault.NormalisedField, fault.DuplicateBehindOurBack: fault.DuplicateBehindOurBack,
	fault.Rollback: fault.Rollback, fault.Unreachable: fault.Unreachable,
	fault.Refused: fault.Refused,
}

var readFaults = map[fault.Kind]fault.Kind{
	fault.LaggingRead: fault.LaggingRead, fault.HangingRead: fault.HangingRead,
}

func (b bench) set(v fault.Kind, variant string) error {
	if own, ok := readFaults[v]; ok {
		b.s.Mailbox.SetFault(own, 1)
		return nil
	}
	if v == fault.UnreadableRead {
		b.s.Mailbox.SetFault(fault.Kind(variant), 1)
		return nil
	}
	own, ok := ownFaults[v]
	if variant != "" {
		own, ok = fault.Kind(variant), true
	}
	if !ok {
		return fmt.Errorf("no fault for %q", v)
	}
	b.s.SetFault(own, 1)
	return nil
}

// seed delivers a mail without our stamp.
func (b bench) seed(w intent.WriteIntent) {
	b.t.Helper()
	var raw strings.Builder
	fmt.Fprintf(&raw, "Message-ID: %s\r\nSubject: %s\r\nFrom: %s\r\nTo: bob@example.org\r\nCc: chloe@example.com\r\n", w.Key["message_id"], w.Expect["subject"], w.Expect["from"])
	fmt.Fprintf(&raw, "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGrüße\r\n")
	if _, err := b.s.Mailbox.Deliver(b.mailbox, []byte(raw.String()), `\Seen`); err != nil {
		b.t.Fatal(err)
	}
}

// records reads the store in a way of its own: with net/mail, not with what the
// connector uses.
func (b bench) records(key intent.Fields) []connectors.Record {
	b.t.Helper()
	messages, err := b.s.Mailbox.Messages(b.mailbox)
	if err != nil {
		b.t.Fatal(err)
	}
	var all []connectors.Record
	for _, m := range messages {
		parsed, err := netmail.ReadMessage(bytes.NewReader(m.Raw))
		if err != nil {
			b.t.Fatal(err)
		}
		if parsed.Header.Get("Message-Id") != key["message_id"] {
			continue
		}
		all = append(all, connectors.Record{
			Ref:   fmt.Sprintf("%d:%d", m.UIDValidity, m.UID),
			Stamp: parsed.Header.Get("X-Readback-Stamp"), Fields: b.fields(parsed),
		})
	}
	return all
}

func (b bench) fields(parsed *netmail.Message) intent.Fields {
	b.t.Helper()
	account, _ := b.s.Account()
	f := intent.Fields{"account": account, "message_id": parsed.Header.Get("Message-Id")}
	subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
	if err != nil {
		b.t.Fatal(err)
	}
	if _, there := parsed.Header["Subject"]; there {
		f["subject"] = subject
	}
	f["body"] = plainText(b.t, parsed.Header, parsed.Body)
	for field, name := range map[string]string{"to": "To", "cc": "Cc", "from": "From"} {
		if parsed.Header.Get(name) == "" {
			continue
		}
		var all []any
		list, err := parsed.Header.AddressList(name)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, a := range list {
			shown := a.Address
			if a.Name != "" {
				shown = a.Name + " <" + a.Address + ">"
			}
			all = append(all, shown)
		}
		if f[field] = all; field == "from" {
			f[field] = all[0]
		}
	}
	return f
}

// plainText is the text of a message, or of its first part.
func plainText(t *testing.T, h netmail.Header, body io.Reader) string {
	t.Helper()
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err == nil && strings.HasPrefix(kind, "multipart/") {
		part, err := multipart.NewReader(body, params["boundary"]).NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		return plainText(t, netmail.Header(part.Header), part)
	}
	if h.Get("Content-Transfer-Encoding") == "quoted-printable" {
		body = quotedprintable.NewReader(body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// effects counts the mails that the server took over, once they are in the
// mailbox: what a queue holds is in no store yet.
func (b bench) effects(key intent.Fields) int {
	n := 0
	for _, m := range b.s.Accepted() {
		if m.ID() == key["message_id"] {
			n++
		}
	}
	if b.queues {
		n = min(n, len(b.records(key)))
	}
	return n
}

// same compares as the profile does: bodies with any line end, and any at the end.
func same(field string, want, got any) bool {
	if field == "body" {
		return lf(want) == lf(got)
	}
	return cmp.Equal(want, got)
}

func lf(v any) string {
	s, _ := v.(string)
	return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n"))
}

// soon is a context for what must end.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
