package mail_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/intent"
	fakemail "github.com/readback-go/readback/internal/fakes/mail"
	"github.com/readback-go/readback/ledger"
)

// TestRoundTrips: a requested mail is read as it was requested, and is sent as it was prepared.
func TestRoundTrips(t *testing.T) {
	for name, change := range map[string]func(w *intent.WriteIntent){
		"plain":              func(*intent.WriteIntent) {},
		"dots and long line": func(w *intent.WriteIntent) { w.Expect["body"] = ".\n..\n.x\n" + strings.Repeat("ü=", 5000) + "\n.\n" },
		"crlf":               func(w *intent.WriteIntent) { w.Expect["body"] = "one\r\ntwo\r\n\r\n.\r\nthree" },
		"no line end":        func(w *intent.WriteIntent) { w.Expect["body"] = "Hi" },
		"empty body":         func(w *intent.WriteIntent) { w.Expect["body"] = "" },
		"no body":            func(w *intent.WriteIntent) { delete(w.Expect, "body") },
		"blanks and tabs":    func(w *intent.WriteIntent) { w.Expect["body"] = "a \n\tb\t\n   \nFrom here\n" },
		"looks like headers": func(w *intent.WriteIntent) { w.Expect["body"] = "Bcc: eve@example.org\n\nHi\n" },
		"every script": func(w *intent.WriteIntent) {
			w.Expect["body"], w.Expect["subject"] = "日本語 ελληνικά 🎉\n", "日本語 ελληνικά 🎉"
		},
		"long subject": func(w *intent.WriteIntent) {
			w.Expect["subject"] = strings.TrimSpace(strings.Repeat("Grüße  an ", 60))
		},
		"ascii subject": func(w *intent.WriteIntent) { w.Expect["subject"] = strings.TrimSpace(strings.Repeat("word  ", 149)) },
		"empty subject": func(w *intent.WriteIntent) { w.Expect["subject"] = "" },
		"no subject":    func(w *intent.WriteIntent) { delete(w.Expect, "subject") },
		"names": func(w *intent.WriteIntent) {
			w.Expect["to"] = []any{"bob@example.org", `Smith, "Bob" <b.smith+x@example.org>`, "Jörg Ä <j@example.org>", "a@b <c@example.org>"}
			w.Expect["cc"] = []any{"(comment) <d@example.org>"}
		},
		"bcc only": func(w *intent.WriteIntent) { delete(w.Expect, "to") },
		"headers": func(w *intent.WriteIntent) {
			w.Payload["headers"] = map[string]any{"Reply-To": "x@example.org", "In-Reply-To": "<1@example.org>"}
		},
		"long names": func(w *intent.WriteIntent) {
			w.Expect["cc"] = []any{strings.Repeat("ü", 400) + " <d@example.org>", "x" + strings.Repeat(`"`, 400) + "x <e@example.org>"}
			w.Payload["attachments"] = []any{file(strings.Repeat("ü", 127), "text/plain", "x"), file(strings.Repeat("a ", 127), "text/plain", "x")}
		},
		"html": func(w *intent.WriteIntent) { w.Payload["html"] = "<p>Hi ü</p>\n" },
		"file": func(w *intent.WriteIntent) {
			w.Payload["attachments"] = []any{file("a.pdf", "application/pdf", "%PDF\x00\xff")}
		},
		"html and text file": func(w *intent.WriteIntent) {
			w.Payload["html"] = "<p>Hi</p>"
			w.Payload["attachments"] = []any{file("Ü 1.txt", "text/plain", "not the body\r\n.\r\n"), file("b", "image/png", "")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newHarness(t, options)
				w := order(b.s)
				change(&w)
				out := b.do(w)
				if out.Status != ledger.Verified {
					t.Fatalf("%s: %s %s", out.Status, out.Text, out.Mismatches)
				}
				rec, err := b.ledger.Get(t.Context(), "acme", out.ID)
				if err != nil {
					t.Fatal(err)
				}
				_, raw, _ := bytes.Cut(rec.Prepared, []byte("\n"))
				sent := b.s.Received()[0]
				if !bytes.Equal(sent.Raw, raw) {
					t.Errorf("over the wire went\n%q\nprepared was\n%q", sent.Raw, raw)
				}
				wellFormed(t, sent.Raw)
				for _, secret := range []string{"dora", "Bcc"} {
					head, _, _ := bytes.Cut(sent.Raw, []byte("\r\n\r\n"))
					if bytes.Contains(head, []byte(secret)) {
						t.Errorf("the header has %q:\n%s", secret, head)
					}
				}
			})
		})
	}
}

func file(name, kind, content string) map[string]any {
	return map[string]any{"name": name, "type": kind, "content": base64.StdEncoding.EncodeToString([]byte(content))}
}

// wellFormed checks what RFC 5322 requires of a message.
func wellFormed(t *testing.T, raw []byte) {
	t.Helper()
	for line := range bytes.Lines(raw) {
		if len(line) > 1000 || !bytes.HasSuffix(line, []byte("\r\n")) || bytes.ContainsFunc(line, func(r rune) bool { return r > '~' || r < ' ' && r != '\r' && r != '\n' && r != '\t' }) {
			t.Errorf("the line %q is too long, is not ASCII or does not end in CRLF", line)
		}
	}
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Header.Date(); err != nil {
		t.Errorf("Date: %v", err)
	}
}

// TestParts: what is in a mail beside the text, read with the standard library.
func TestParts(t *testing.T) {
	c := connect(t, withFrom())
	w := letter()
	w.Key = intent.Fields{"account": "alice@example.org"}
	w.Payload = intent.Fields{"html": "<p>é</p>", "attachments": []any{file("Ü 1.pdf", "application/pdf", "%PDF\x00")}}
	_, raw, _ := bytes.Cut(prepared(t, c, w).Prepared, []byte("\n"))
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	got := parts(t, m.Header.Get("Content-Type"), m.Body)
	want := []string{"text/plain: Hi.\r\n", "text/html: <p>é</p>", "application/pdf Ü 1.pdf: %PDF\x00"}
	if !slices.Equal(got, want) {
		t.Errorf("the parts are %q, want %q", got, want)
	}
}

func parts(t *testing.T, kind string, body io.Reader) []string {
	t.Helper()
	media, params, err := mime.ParseMediaType(kind)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	if !strings.HasPrefix(media, "multipart/") {
		t.Fatalf("%s is no list of parts", kind)
	}
	for r := multipart.NewReader(body, params["boundary"]); ; {
		part, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		kind := part.Header.Get("Content-Type")
		if strings.HasPrefix(kind, "multipart/") {
			all = append(all, parts(t, kind, part)...)
			continue
		}
		media, _, _ := mime.ParseMediaType(kind)
		all = append(all, media+named(part.FileName())+": "+decoded(t, part))
	}
}

func named(file string) string {
	if file == "" {
		return ""
	}
	return " " + file
}

func decoded(t *testing.T, part *multipart.Part) string {
	t.Helper()
	var r io.Reader = part
	switch part.Header.Get("Content-Transfer-Encoding") {
	case "quoted-printable":
		r = quotedprintable.NewReader(part)
	case "base64":
		r = base64.NewDecoder(base64.StdEncoding, part)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func withFrom() mail.Options {
	o := good()
	o.From = "alice@example.org"
	return o
}

// TestUnsendable: every injection into a header or a command is refused, and the error names the
// field.
func TestUnsendable(t *testing.T) {
	for path, values := range map[string][]any{
		"/expect/from":                      {"alice", "", "a@b@c", "<a@example.org>", "A <a@example.org>\r\nBcc: x@y", "A\x00 <a@example.org>", "jörg@example.org", "a@exämple.org", `"a b"@example.org`, "a@[127.0.0.1]", "a@example.org>,<b@example.org", []any{"a@example.org"}, nil, strings.Repeat("a", 300) + "@example.org", "x" + strings.Repeat(`"`, 800) + "x <a@example.org>"},
		"/expect/to/0":                      {[]any{"bob@example.org, eve@example.org"}, []any{"b@example.org\r\nDATA"}, []any{"=?utf-8?q?x?= <b@example.org>"}, []any{`"Bob" <b@example.org>`}, []any{"@"}},
		"/expect/to":                        {[]any{}, "bob@example.org", nil, many(101)},
		"/expect/cc":                        {[]any{}, "bob@example.org"},
		"/expect/subject":                   {"a\r\nBcc: x@y", "a\nb", "a\x00", "\x7f", "=?utf-8?q?x?=", 1, nil, "\xff", strings.Repeat("a", 901)},
		"/expect/body":                      {"a\rb", nil, 1, "\xff"},
		"/expect/flags":                     {[]any{}},
		"/payload/bcc/0":                    {[]any{"x@y\r\nRCPT TO:<z@y>"}},
		"/payload/html":                     {1, "\xff"},
		"/payload/headers":                  {"x", map[string]any{"": "x"}, map[string]any{"A:B": "x"}, map[string]any{"A\r\nBcc": "x"}, map[string]any{"A B": "x"}},
		"/payload/headers/X-A":              {map[string]any{"X-A": "a\r\nBcc: x@y"}, map[string]any{"X-A": "ü"}, map[string]any{"X-A": 1}, map[string]any{"X-A": strings.Repeat("a", 901)}},
		"/payload/headers/bCC":              {map[string]any{"bCC": "x@y"}},
		"/payload/headers/Resent-To":        {map[string]any{"Resent-To": "x@y"}},
		"/payload/headers/Message-Id":       {map[string]any{"Message-Id": "<x@y>"}},
		"/payload/headers/X-Readback-Stamp": {map[string]any{"X-Readback-Stamp": "x"}},
		"/payload/headers/Content-Type":     {map[string]any{"Content-Type": "x"}},
		"/payload/attachments":              {[]any{}, "x"},
		"/payload/attachments/0":            {[]any{"x"}, []any{map[string]any{"name": "a"}}},
		"/payload/attachments/0/name":       {[]any{file("../a", "a/b", "x")}, []any{file("", "a/b", "x")}, []any{file("a\r\nb", "a/b", "x")}},
		"/payload/attachments/0/type":       {[]any{file("a", "a", "x")}, []any{file("a", "multipart/mixed", "x")}, []any{file("a", "message/rfc822", "x")}, []any{file("a", "a/b\r\nc: d", "x")}, []any{file("a", "text/plain; charset=x", "x")}},
		"/payload/attachments/0/content":    {[]any{map[string]any{"name": "a", "type": "a/b", "content": "?"}}, []any{map[string]any{"name": "a", "type": "a/b", "content": 1}}},
		"/payload/date":                     {"x"},
	} {
		for _, v := range values {
			c := connect(t, withFrom())
			w := letter()
			w.Key = intent.Fields{"account": "alice@example.org"}
			set(&w, path, v)
			built, err := c.Prepare(t.Context(), connectors.Request{Intent: w, Stamp: w.Stamp()})
			if !errors.Is(err, mail.ErrIntent) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s as %q: %v, want an error that names it; built was %q", path, v, err, built)
			}
		}
	}
}

func set(w *intent.WriteIntent, path string, v any) {
	where, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	name, _, _ = strings.Cut(name, "/")
	if where == "expect" {
		w.Expect[name] = v
		return
	}
	w.Payload = intent.Fields{name: v}
}

func many(n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = "bob@example.org"
	}
	return all
}

func TestNotForThisAccount(t *testing.T) {
	c := connect(t, withFrom())
	for name, tt := range map[string]struct {
		change func(w *intent.WriteIntent)
		names  string
	}{
		"no recipient":       {func(w *intent.WriteIntent) { delete(w.Expect, "to") }, "/expect/to"},
		"another account":    {func(w *intent.WriteIntent) { w.Key = intent.Fields{"account": "bob@example.org"} }, "/key/account"},
		"a mailbox":          {func(w *intent.WriteIntent) { w.Key = intent.Fields{"mailbox": "Sent"} }, "/key/mailbox"},
		"another Message-ID": {func(w *intent.WriteIntent) { w.Key = intent.Fields{"message_id": "<a@b>"} }, "/key/message_id"},
		"no Message-ID":      {func(w *intent.WriteIntent) { w.Kind = mail.KindNamed }, "/key/message_id"},
		"no form of one":     {func(w *intent.WriteIntent) { w.Kind, w.Key = mail.KindNamed, intent.Fields{"message_id": "a@b"} }, "/key/message_id"},
		"two in one": {func(w *intent.WriteIntent) {
			w.Kind, w.Key = mail.KindNamed, intent.Fields{"message_id": "<a@b>\r\nBcc: <c@d>"}
		}, "/key/message_id"},
		"an account it is not": {func(w *intent.WriteIntent) { w.Expect["account"] = "bob@example.org" }, "/expect/account"},
		"an id it will not be": {func(w *intent.WriteIntent) { w.Expect["message_id"] = "<a@b>" }, "/expect/message_id"},
		"a crowd": {func(w *intent.WriteIntent) {
			for _, field := range []string{"to", "cc"} {
				w.Expect[field] = crowd(field, 51)
			}
		}, "the recipients"},
		"much to read": {func(w *intent.WriteIntent) {
			all := crowd("to", 90)
			for i, plain := range all {
				all[i] = fmt.Sprintf("%s <%s>", strings.Repeat("ü", 400), plain)
			}
			w.Expect["to"] = all
		}, "the header"},
		"several":      {func(w *intent.WriteIntent) { w.Count = 2 }, "/count"},
		"another kind": {func(w *intent.WriteIntent) { w.Kind = "letter" }, "/kind"},
		"too large":    {func(w *intent.WriteIntent) { w.Expect["body"] = strings.Repeat("ü", 400_000) }, "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := letter()
			w.Key = intent.Fields{"account": "alice@example.org"}
			tt.change(&w)
			_, err := c.Prepare(t.Context(), connectors.Request{Intent: w, Stamp: w.Stamp()})
			if !errors.Is(err, mail.ErrIntent) || !strings.Contains(err.Error(), tt.names) {
				t.Errorf("%v, want an error that names %q", err, tt.names)
			}
		})
	}
}

func crowd(name string, n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s%d@example.org", name, i)
	}
	return all
}

// TestRecipientsOnce: a server that receives one twice may deliver it twice.
func TestRecipientsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakemail.Start(t, fakemail.Options{InProcess: true})
		c := connect(t, copied(s))
		w := order(s)
		address, _ := s.Account()
		w.Expect["to"] = []any{"bob@example.org", "Bob <bob@EXAMPLE.org>", "Bob@example.org"}
		w.Expect["cc"] = []any{"bob@example.org", strings.ToUpper("x@") + "example.org"}
		w.Payload["bcc"] = []any{"bob@example.org", address}
		if _, err := c.Write(t.Context(), prepared(t, c, w)); err != nil {
			t.Fatal(err)
		}
		want := []string{"bob@example.org", "Bob@example.org", "X@example.org", address}
		if got := s.Received()[0].To; !slices.Equal(got, want) {
			t.Errorf("the recipients are %q, want %q", got, want)
		}
		w.Call, w.Expect["to"], w.Expect["cc"] = 1, []any{strings.ToUpper(address[:5]) + address[5:]}, []any{"bob@example.org"}
		delete(w.Payload, "bcc")
		if _, err := c.Write(t.Context(), prepared(t, c, w)); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Mailbox.Count("INBOX"); err != nil || n != 2 {
			t.Errorf("INBOX has %d mails, %v; want one of each of the two writes", n, err)
		}
	})
}
