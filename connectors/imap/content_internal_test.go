package imap

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
)

func num(n int) json.Number { return json.Number(strconv.Itoa(n)) }

type f = intent.Fields

const someID = "<a@b>"

func creating(expect, payload f) intent.WriteIntent {
	return intent.WriteIntent{Kind: KindNamed, Write: intent.Create, Key: f{"mailbox": "INBOX", "message_id": someID}, Expect: expect, Payload: payload}
}

func updating(expect f) intent.WriteIntent {
	w := creating(expect, nil)
	w.Write = intent.Update
	return w
}

func keyed(kind string, w intent.WriteType, key f) intent.WriteIntent {
	return intent.WriteIntent{Kind: kind, Write: w, Key: key}
}

// unservable is intents that no mailbox can hold or query.
var unservable = map[string]struct {
	w      intent.WriteIntent
	path   string // what the error must name
	reason string
}{
	"no kind":               {keyed("", intent.Create, f{"mailbox": "INBOX"}), "/kind", "there are two"},
	"no mailbox":            {keyed(KindMessage, intent.Create, f{}), "/key/mailbox", "and no default in the options"},
	"mailbox null":          {keyed(KindMessage, intent.Create, f{"mailbox": nil}), "/key/mailbox", "null is no name"},
	"mailbox with CR":       {keyed(KindMessage, intent.Create, f{"mailbox": "a\r\nb"}), "/key/mailbox", "would be another command"},
	"strange key":           {keyed(KindMessage, intent.Create, f{"mailbox": "INBOX", "subject": "x"}), "/key/subject", "no exact lookup"},
	"id of its own":         {keyed(KindMessage, intent.Create, f{"mailbox": "INBOX", "message_id": someID}), "/key/message_id", "the profile says that keys are fresh"},
	"no id for named":       {keyed(KindNamed, intent.Create, f{"mailbox": "INBOX"}), "/key/message_id", "the caller gives it"},
	"no id for update":      {keyed(KindMessage, intent.Update, f{"mailbox": "INBOX"}), "/key/message_id", "the stamp of an update is in no message"},
	"no id for delete":      {keyed(KindMessage, intent.Delete, f{"mailbox": "INBOX"}), "/key/message_id", "likewise"},
	"id without brackets":   {keyed(KindNamed, intent.Update, f{"mailbox": "INBOX", "message_id": "a@b"}), "/key/message_id", "a substring of many"},
	"id with a blank":       {keyed(KindNamed, intent.Update, f{"mailbox": "INBOX", "message_id": "<a @b>"}), "/key/message_id", "no Message-ID has one"},
	"id that ends early":    {keyed(KindNamed, intent.Update, f{"mailbox": "INBOX", "message_id": "<a@b>\r\nBcc: x"}), "/key/message_id", "would be another header"},
	"id too long":           {keyed(KindNamed, intent.Update, f{"mailbox": "INBOX", "message_id": "<" + strings.Repeat("a", 1000) + "@b>"}), "/key/message_id", "longer than a line"},
	"uid for create":        {keyed(KindMessage, intent.Create, f{"mailbox": "INBOX", "uid": num(1), "uidvalidity": num(1)}), "/key/uid", "the server chooses"},
	"uid alone":             {keyed(KindMessage, intent.Update, f{"mailbox": "INBOX", "uid": num(1)}), "/key/uidvalidity", "means nothing alone"},
	"validity alone":        {keyed(KindMessage, intent.Update, f{"mailbox": "INBOX", "uidvalidity": num(1)}), "/key/uid ", "means nothing alone"},
	"uid and id":            {keyed(KindMessage, intent.Update, f{"mailbox": "INBOX", "uid": num(1), "uidvalidity": num(1), "message_id": someID}), "/key/message_id", "which of the two?"},
	"uid too large":         {keyed(KindMessage, intent.Update, f{"mailbox": "INBOX", "uid": num(1 << 32), "uidvalidity": num(1)}), "/key/uid ", "32 bits"},
	"strange field":         {creating(f{"priority": "1"}, nil), "/expect/priority", "it could never be seen"},
	"strange payload":       {creating(nil, f{"bcc": "a@b"}), "/payload/bcc", "headers alone"},
	"subject of two lines":  {creating(f{"subject": "a\r\nBcc: x@y"}, nil), "/expect/subject", "would be another header"},
	"subject null":          {creating(f{"subject": nil}, nil), "/expect/subject", "mail has no null"},
	"subject encoded":       {creating(f{"subject": "=?utf-8?q?a?="}, nil), "/expect/subject", "would be decoded when read"},
	"subject too long":      {creating(f{"subject": strings.Repeat("a", 901)}, nil), "/expect/subject", "longer than a line"},
	"body a number":         {creating(f{"body": num(1)}, nil), "/expect/body", "text alone"},
	"body with bare CR":     {creating(f{"body": "a\rb"}, nil), "/expect/body", "would come back as CRLF"},
	"body too large":        {creating(f{"body": strings.Repeat("=", maxMessage/2)}, nil), "/expect/body", "bounded"},
	"from with quotes":      {creating(f{"from": `"Alice" <a@b.c>`}, nil), "/expect/from", "would be read without them"},
	"from nobody":           {creating(f{"from": "Alice"}, nil), "/expect/from", "no address"},
	"from injected":         {creating(f{"from": "a@b.c\r\nX: y"}, nil), "/expect/from", "would be another header"},
	"to as text":            {creating(f{"to": "a@b.c"}, nil), "/expect/to", "a list"},
	"to nobody":             {creating(f{"to": []any{}}, nil), "/expect/to", "a header that is not there is not empty"},
	"cc wrong":              {creating(f{"cc": []any{"a@b.c", "x"}}, nil), "/expect/cc/1", "the second"},
	"date with fraction":    {creating(f{"date": "2026-01-02T03:04:05.5Z"}, nil), "/expect/date", "headers have whole seconds"},
	"date wrong":            {creating(f{"date": "yesterday"}, nil), "/expect/date", "RFC 3339"},
	"flag unknown":          {creating(f{"flags": []any{`\Seen`, `\Recent`}}, nil), "/expect/flags/1", "the server's own"},
	"flag is keyword":       {creating(f{"flags": []any{"todo"}}, nil), "/expect/flags/0", "belongs to keywords"},
	"keyword is flag":       {creating(f{"keywords": []any{`\Seen`}}, nil), "/expect/keywords/0", "belongs to flags"},
	"keyword with blank":    {creating(f{"keywords": []any{"to do"}}, nil), "/expect/keywords/0", "C3.13: go-imap would drop the connection"},
	"keyword with bracket":  {creating(f{"keywords": []any{"a]"}}, nil), "/expect/keywords/0", "C3.13"},
	"keyword foreign":       {creating(f{"keywords": []any{"ä"}}, nil), "/expect/keywords/0", "atoms are ASCII"},
	"keyword no text":       {creating(f{"keywords": []any{num(1)}}, nil), "/expect/keywords/0", "text alone"},
	"header of our own":     {creating(nil, f{"headers": map[string]any{"message-id": "x"}}), "/payload/headers/message-id", "is the key"},
	"header of the stamp":   {creating(nil, f{"headers": map[string]any{"X-Readback-STAMP": "x"}}), "/payload/headers/X-Readback-STAMP", "is the stamp"},
	"header of the body":    {creating(nil, f{"headers": map[string]any{"Content-Type": "x"}}), "/payload/headers/Content-Type", "how to read the body"},
	"header injected":       {creating(nil, f{"headers": map[string]any{"X-A": "a\r\nB: c"}}), "/payload/headers/X-A", "would be another header"},
	"header name wrong":     {creating(nil, f{"headers": map[string]any{"X A": "a"}}), "/payload/headers", "no header name"},
	"update of the subject": {updating(f{"subject": "new"}), "/expect/subject", "mail is fixed"},
	"update of nothing":     {updating(nil), "/expect", "nothing to do"},
	"update of flag text":   {updating(f{"flags": `\Seen`}), "/expect/flags", "a list"},
}

func TestIntentsThatCannotBeServed(t *testing.T) {
	c := &Connector{o: Options{Domain: "readback.invalid"}}
	for name, tt := range unservable {
		t.Run(name, func(t *testing.T) {
			a, err := c.locate(tt.w, "rb-x")
			if err == nil {
				switch tt.w.Write {
				case intent.Create:
					var m content
					if err = c.checkFresh(tt.w, a, "rb-x"); err != nil {
						break
					}
					if m, err = contentOf(tt.w); err == nil {
						_, err = compose(m, a.messageID, "rb-x")
					}
				case intent.Update:
					_, err = changeOf(tt.w)
				}
			}
			if !errors.Is(err, errIntent) || !strings.Contains(err.Error()+" ", tt.path) {
				t.Errorf("error %v, want ErrIntent that names %s: %s", err, tt.path, tt.reason)
			}
		})
	}
}

// TestSameBytes: no clock, no chance, no order of maps.
func TestSameBytes(t *testing.T) {
	w := intent.WriteIntent{
		Expect: intent.Fields{
			"from": "Jürgen Groß <j@example.org>", "to": []any{"a@example.org", "Doe, John <b@example.org>"},
			"subject": "Grüße", "body": "a=b\nc", "date": "2026-01-02T03:04:05+01:00",
		},
		Payload: intent.Fields{"headers": map[string]any{"X-B": "2", "X-A": "1"}},
	}
	const want = "Date: Fri, 02 Jan 2026 03:04:05 +0100\r\n" +
		"From: =?utf-8?q?J=C3=BCrgen_Gro=C3=9F?= <j@example.org>\r\n" +
		"To: <a@example.org>,\r\n \"Doe, John\" <b@example.org>\r\n" +
		"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n" +
		"Message-ID: <id@x>\r\nX-Readback-Stamp: rb-x\r\nX-A: 1\r\nX-B: 2\r\n" +
		"MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
		"a=3Db\r\nc"
	for range 20 {
		m, err := contentOf(w)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := compose(m, "<id@x>", "rb-x")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(raw)); diff != "" {
			t.Fatalf("message (-want +got):\n%s", diff)
		}
	}
}

// FuzzRoundTrip: whatever contentOf takes, a read gives back.
func FuzzRoundTrip(f *testing.F) {
	f.Add("a subject", "a body\r\n", "Alice <a@example.org>")
	f.Add("two  blanks", "=\n.\nFrom x", "a@example.org")
	f.Add(strings.Repeat("ž", 400), "trailing \t\n", "Ž, X. <z@example.org>")
	f.Add(" tab\tinside ", "", `q"uoted\ <q@example.org>`)
	f.Fuzz(func(t *testing.T, subject, body, from string) {
		expect := intent.Fields{"subject": subject, "body": body, "from": from}
		m, err := contentOf(intent.WriteIntent{Expect: expect})
		if err != nil {
			return // refused: that is an answer
		}
		raw, err := compose(m, "<id@x>", "rb-x")
		if err != nil {
			return // refused: that is an answer
		}
		head, text, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
		for line := range bytes.SplitSeq(raw, []byte("\r\n")) {
			if len(line) > 998 {
				t.Errorf("a line of %d bytes", len(line))
			}
		}
		e, err := newEnvelope(&imapclient.FetchMessageBuffer{UID: 1, BodySection: []imapclient.FetchBodySectionBuffer{
			{Section: &goimap.FetchItemBodySection{Specifier: goimap.PartSpecifierHeader}, Bytes: append(head, "\r\n\r\n"...)},
		}})
		if err != nil {
			t.Fatalf("%v\n%q", err, raw)
		}
		e.text = append([]byte{}, text...)
		got := e.record("INBOX", 1, "<id@x>").Fields
		if strings.TrimSpace(subject) != strings.TrimSpace(got["subject"].(string)) || from != got["from"] {
			t.Errorf("subject %q, from %q; want %q, %q", got["subject"], got["from"], subject, from)
		}
		if strings.ReplaceAll(body, "\r\n", "\n") != strings.ReplaceAll(got["body"].(string), "\r\n", "\n") {
			t.Errorf("body %q, want %q", got["body"], body)
		}
	})
}
