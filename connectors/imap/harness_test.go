package imap_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/intent"
	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
	"github.com/readback-go/readback/readbacktest/fault"
)

// starter opens an empty account.
type starter func(t *testing.T, o fakeimap.Options) *fakeimap.Server

func inMemory(t *testing.T, o fakeimap.Options) *fakeimap.Server { return fakeimap.Start(t, o) }

func onDovecot(t *testing.T) starter {
	d := fakeimap.StartDovecot(t)
	return func(t *testing.T, o fakeimap.Options) *fakeimap.Server { return d.Start(t, o) }
}

// connect makes a connector for a server; change may be nil.
func connect(t *testing.T, s *fakeimap.Server, change func(o *imap.Options)) *imap.Connector {
	t.Helper()
	username, password := s.Account()
	return connectTo(t, imap.Options{
		Addr: s.Addr(), Username: username,
		Password:    func(context.Context) (string, error) { return password, nil },
		SingleStore: true,
	}, change)
}

func connectTo(t *testing.T, o imap.Options, change func(o *imap.Options)) *imap.Connector {
	t.Helper()
	o.Security = imap.Insecure
	if change != nil {
		change(&o)
	}
	c, err := imap.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The suite that every connector passes, in memory and on a real server.
func TestConformanceInMemory(t *testing.T) {
	t.Run(imap.KindNamed, func(t *testing.T) { conformance(t, inMemory, imap.KindNamed, false) })
	t.Run(imap.KindMessage, func(t *testing.T) { conformance(t, inMemory, imap.KindMessage, false) })
}

func TestConformanceDovecot(t *testing.T) { conformance(t, onDovecot(t), imap.KindNamed, true) }

func conformance(t *testing.T, start starter, kind string, condStore bool) {
	connectortest.Run(t, suite(start, kind, condStore))
}

func suite(start starter, kind string, condStore bool) connectortest.Harness {
	return connectortest.Harness{
		Open: func(t *testing.T) *connectortest.Fixture {
			return fixture(t, start(t, fakeimap.Options{}), kind, condStore)
		},
		Writes:   []intent.WriteType{intent.Create, intent.Update, intent.Delete},
		RealTime: true,
		// A busy machine must reach the server in this time, or what comes
		// late is never sent.
		SendTimeout: map[bool]time.Duration{false: 500 * time.Millisecond, true: 2 * time.Second}[condStore],
		Variants: map[fault.Kind][]string{
			fault.UnreadableRead: {string(fault.UnreadableRead), string(fakeimap.GarbledRead), string(fakeimap.CutRead)},
		},
		Lacks: map[string]string{
			string(fault.Throttled):      "no response code of IMAP carries a time to wait; TestThrottled has the rest",
			connectortest.LacksNullField: "a header is there or not; mail has no null",
		},
	}
}

// bench is the store as the suite sees it, read without the connector.
type bench struct {
	t *testing.T
	s *fakeimap.Server
}

func fixture(t *testing.T, s *fakeimap.Server, kind string, condStore bool) *connectortest.Fixture {
	c := connect(t, s, func(o *imap.Options) { o.SingleStore, o.CondStore = false, condStore })
	b := bench{t, s}
	return &connectortest.Fixture{
		Connector: c,
		Profile:   c.Profiles()[kind],
		Scope:     &connectors.Scope{Kind: kind, Within: intent.Fields{"mailbox": "INBOX"}},
		Intent:    func(w intent.WriteType, n int) intent.WriteIntent { return numbered(kind, w, n) },
		Near:      near,
		Set:       b.set,
		Seed:      func(w intent.WriteIntent) { b.seed(w) },
		Change:    b.change,
		Records:   b.records,
		Effects:   b.effects,
		Sends:     s.Sends,
		Same:      same,
	}
}

// numbered is a good intent on message n.
func numbered(kind string, w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{
		Kind: kind, Write: w,
		Key: intent.Fields{"mailbox": "INBOX", "message_id": fmt.Sprintf("<message.%d@example.org>", n)},
	}
	if kind == imap.KindMessage { // the Message-ID is that of the create's stamp
		made := intent.WriteIntent{Tenant: "connectortest", Workflow: "w", Tool: "create", Call: n}
		in.Tenant, in.Workflow, in.Tool, in.Call = made.Tenant, made.Workflow, string(w), n
		in.Key["message_id"] = "<" + made.Stamp() + "@readback.invalid>"
	}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{
			"from": "Alice A <alice@example.org>", "to": []any{"bob@example.org"},
			"subject": fmt.Sprintf("Message %d", n), "body": "Grüße,\nAlice\n",
			"flags": []any{`\Seen`}, "keywords": []any{"todo"},
		}
	case intent.Update: // one STORE does it
		in.Expect = intent.Fields{"flags": []any{`\Seen`, `\Flagged`}, "keywords": []any{"todo", "later"}}
	}
	return in
}

// near is messages whose Message-IDs contain that of n, or nearly are it.
func near(n int) []intent.WriteIntent {
	var all []intent.WriteIntent
	for _, id := range []string{
		fmt.Sprintf("<Message.%d@example.org>", n), fmt.Sprintf("<message.%d1@example.org>", n),
		fmt.Sprintf("<message.%d@example.org.uk>", n), fmt.Sprintf("<a.message.%d@example.org>", n),
	} {
		in := numbered(imap.KindNamed, intent.Create, n)
		in.Key["message_id"] = id
		all = append(all, in)
	}
	return all
}

var ownFaults = map[fault.Kind]fault.Kind{
	fault.LostAnswer: fault.LostAnswer, fault.DroppedBefore: fault.DroppedBefore,
	fault.BadGateway: fault.BadGateway, fault.LateCommit: fault.LateCommit,
	fault.PhantomSuccess: fault.PhantomSuccess, fault.DroppedField: fault.DroppedField,
	fault.NormalisedField: fault.NormalisedField, fault.LaggingRead: fault.LaggingRead,
	fault.HangingRead: fault.HangingRead, fault.DuplicateBehindOurBack: fault.DuplicateBehindOurBack,
	fault.Rollback: fault.Rollback, fault.Unreachable: fault.Unreachable,
	fault.Refused: fault.Refused,
}

func (b bench) set(v fault.Kind, variant string) error {
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

// seed delivers a message without our stamp.
func (b bench) seed(w intent.WriteIntent) uint32 {
	b.t.Helper()
	var raw strings.Builder
	fmt.Fprintf(&raw, "Message-ID: %s\r\nSubject: %s\r\nFrom: %s\r\nTo: bob@example.org\r\n", w.Key["message_id"], w.Expect["subject"], w.Expect["from"])
	fmt.Fprintf(&raw, "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGrüße,\r\nAlice\r\n")
	uid, err := b.s.Deliver(w.Key["mailbox"].(string), []byte(raw.String()), `\Seen`, "todo")
	if err != nil {
		b.t.Fatal(err)
	}
	return uid
}

func (b bench) change(key intent.Fields) {
	b.t.Helper()
	for _, r := range b.records(key) {
		b.mark(key, r.Ref, `\Answered`)
	}
}

func (b bench) mark(key intent.Fields, ref string, marks ...string) {
	b.t.Helper()
	_, uid, _ := strings.Cut(ref, ":")
	n, err := strconv.ParseUint(uid, 10, 32)
	if err == nil {
		err = b.s.Mark(key["mailbox"].(string), uint32(n), marks...)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// records reads the store in a way of its own: with net/mail, not with what the
// connector uses.
func (b bench) records(key intent.Fields) []connectors.Record {
	b.t.Helper()
	mailbox := key["mailbox"].(string)
	messages, err := b.s.Messages(mailbox)
	if err != nil {
		b.t.Fatal(err)
	}
	var all []connectors.Record
	for _, m := range messages {
		parsed, err := mail.ReadMessage(bytes.NewReader(m.Raw))
		if err != nil {
			b.t.Fatal(err)
		}
		if parsed.Header.Get("Message-Id") != key["message_id"] {
			continue
		}
		all = append(all, connectors.Record{
			Ref: fmt.Sprintf("%d:%d", m.UIDValidity, m.UID), Version: strconv.FormatUint(m.ModSeq, 10),
			Stamp: parsed.Header.Get("X-Readback-Stamp"), Fields: b.fields(mailbox, m, parsed),
		})
	}
	return all
}

func (b bench) fields(mailbox string, m fakeimap.Message, parsed *mail.Message) intent.Fields {
	b.t.Helper()
	f := intent.Fields{"mailbox": mailbox, "message_id": parsed.Header.Get("Message-Id")}
	if len(parsed.Header["Subject"]) > 0 {
		subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
		if err != nil {
			b.t.Fatal(err)
		}
		f["subject"] = subject
	}
	if len(parsed.Header["From"]) > 0 {
		f["from"] = addresses(b.t, parsed, "From")[0]
	}
	if len(parsed.Header["To"]) > 0 {
		var to []any
		for _, a := range addresses(b.t, parsed, "To") {
			to = append(to, a)
		}
		f["to"] = to
	}
	body := parsed.Body
	if parsed.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
		body = quotedprintable.NewReader(body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		b.t.Fatal(err)
	}
	f["body"] = string(text)
	flags, keywords := []any{}, []any{}
	for _, flag := range m.Flags {
		if strings.HasPrefix(flag, `\`) {
			flags = append(flags, flag)
		} else {
			keywords = append(keywords, flag)
		}
	}
	f["flags"], f["keywords"] = flags, keywords
	return f
}

func addresses(t *testing.T, m *mail.Message, name string) []string {
	t.Helper()
	list, err := m.Header.AddressList(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, a := range list {
		if a.Name == "" {
			all = append(all, a.Address)
		} else {
			all = append(all, a.Name+" <"+a.Address+">")
		}
	}
	return all
}

// effects counts an update or a delete of several messages once for each.
func (b bench) effects(key intent.Fields) int {
	n := 0
	for _, e := range b.s.Effects() {
		if e.Mailbox == key["mailbox"] && e.MessageID == key["message_id"] {
			n++
		}
	}
	return n
}

// same compares as the profile does: flags as sets in any case, bodies with any line end. A
// missing list of flags is an empty one.
func same(field string, want, got any) bool {
	switch field {
	case "flags", "keywords":
		return cmp.Equal(flagNames(want), flagNames(got))
	case "body":
		return lf(want) == lf(got)
	}
	return cmp.Equal(want, got)
}

func flagNames(v any) []string {
	names := []string{}
	list, _ := v.([]any)
	for _, f := range list {
		names = append(names, strings.ToLower(f.(string)))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func lf(v any) string {
	s, _ := v.(string)
	return strings.ReplaceAll(s, "\r\n", "\n")
}

// number is a number as fields hold them.
func number[N uint32 | int](n N) json.Number { return json.Number(fmt.Sprint(n)) }
