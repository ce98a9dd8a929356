package imap_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
)

// deliver puts a message there as a mail server would.
func deliver(t *testing.T, s *fakeimap.Server, mailbox, id, stamp, rest string) {
	t.Helper()
	raw := "Message-ID: " + id + "\r\n"
	if stamp != "" {
		raw += "X-Readback-Stamp: " + stamp + "\r\n"
	}
	if _, err := s.Deliver(mailbox, []byte(raw+strings.ReplaceAll(rest, "\n", "\r\n"))); err != nil {
		t.Fatal(err)
	}
}

// TestFind: by Message-ID, by stamp, or by either, and nothing that only
// resembles them; in a mailbox that is found by its mark.
func TestFind(t *testing.T) {
	for name, tt := range map[string]struct {
		start starter
		sent  string
	}{
		"in memory": {func(t *testing.T, o fakeimap.Options) *fakeimap.Server {
			o.SpecialUse = map[string]string{"Gesendete Objekte": `\Sent`, "Papierkorb": `\Trash`}
			return fakeimap.Start(t, o)
		}, "Gesendete Objekte"},
		"dovecot": {onDovecotLater, fakeimap.DovecotSent},
	} {
		t.Run(name, func(t *testing.T) {
			s := tt.start(t, fakeimap.Options{})
			deliver(t, s, tt.sent, "<a.1@x>", "stamp-1", "Subject: one\n\nHi\n")
			deliver(t, s, tt.sent, "<other@server>", "stamp-2", "Subject: two\n\nHi\n")
			deliver(t, s, tt.sent, "<a.12@x>", "stamp-12", "Subject: twelve\n\nHi\n")
			deliver(t, s, "INBOX", "<a.3@x>", "stamp-3", "Subject: elsewhere\n\nHi\n")
			c := connect(t, s, nil)
			wanted := map[imap.Wanted][]any{
				{MessageID: "<a.1@x>"}:                   {"one"},
				{Stamp: "stamp-1"}:                       {"one"},
				{MessageID: "<a.2@x>", Stamp: "stamp-2"}: {"two"},
				{MessageID: "<a.1@x>", Stamp: "stamp-2"}: {"one", "two"},
				{MessageID: "<A.1@x>"}:                   nil,
				{Stamp: "stamp"}:                         nil,
				{MessageID: "<a.3@x>", Stamp: "stamp-3"}: nil,
			}
			var asked []imap.Wanted
			for w := range wanted {
				asked = append(asked, w)
			}
			found, err := c.Find(t.Context(), imap.Box{Use: `\Sent`}, imap.Box{}, asked)
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range asked {
				var subjects []any
				for _, r := range found[i].Observation.Records {
					subjects = append(subjects, r.Fields["subject"])
				}
				if found[i].Err != nil || !slices.Equal(subjects, wanted[w]) {
					t.Errorf("%+v: %v, %v; want %v", w, subjects, found[i].Err, wanted[w])
				}
			}
		})
	}
}

// onDovecotLater starts Dovecot for the one test that needs it.
func onDovecotLater(t *testing.T, o fakeimap.Options) *fakeimap.Server { return onDovecot(t)(t, o) }

// TestFindWithoutMailbox: an undetermined mailbox is an error, and never absence.
func TestFindWithoutMailbox(t *testing.T) {
	marks := func(m map[string]string) *imap.Connector {
		return connect(t, fakeimap.Start(t, fakeimap.Options{SpecialUse: m}), nil)
	}
	for name, tt := range map[string]struct {
		c    *imap.Connector
		box  imap.Box
		want error
	}{
		"nothing marked": {marks(nil), imap.Box{Use: `\Sent`}, imap.ErrNoUse},
		"another mark":   {marks(map[string]string{"A": `\Drafts`}), imap.Box{Use: `\Sent`}, imap.ErrNoUse},
		"two marked":     {marks(map[string]string{"A": `\Sent`, "B": `\Sent`}), imap.Box{Use: `\Sent`}, imap.ErrNoUse},
		"only a folder":  {marks(map[string]string{"A": `\Sent \NoSelect`}), imap.Box{Use: `\Sent`}, imap.ErrNoUse},
		"no such name":   {marks(nil), imap.Box{Name: "No Such Box", Use: `\Sent`}, imap.ErrNoMailbox},
	} {
		t.Run(name, func(t *testing.T) {
			if found, err := tt.c.Find(t.Context(), tt.box, imap.Box{}, []imap.Wanted{{Stamp: "s"}}); err == nil {
				err = found[0].Err
				if !errors.Is(err, tt.want) {
					t.Errorf("%+v, want %v", found, tt.want)
				}
			} else if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if err := tt.c.CheckBox(t.Context(), tt.box); !errors.Is(err, tt.want) {
				t.Errorf("the check says %v, want %v", err, tt.want)
			}
		})
	}
}

// TestFindRefuses: what could not be found, or would find everything.
func TestFindRefuses(t *testing.T) {
	c := connect(t, fakeimap.Start(t, fakeimap.Options{}), nil)
	for reason, w := range map[string]imap.Wanted{
		"it would find everything": {},
		"no brackets":              {MessageID: "a@x"},
		"two lines":                {MessageID: "<a@x>\r\nb"},
		"a blank":                  {Stamp: "a b"},
	} {
		found, err := c.Find(t.Context(), imap.Box{Name: "INBOX"}, imap.Box{}, []imap.Wanted{w, {Stamp: "good"}})
		if err != nil || !errors.Is(found[0].Err, imap.ErrIntent) || found[1].Err != nil {
			t.Errorf("%+v: %+v, %v; want an error for it alone: %s", w, found, err, reason)
		}
	}
}

const nested = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=A

--A
Content-Type: text/plain
Content-Disposition: attachment; filename=a.txt

a file
--A
Content-Type: multipart/alternative; boundary=B

--B
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

Gr=C3=BC=C3=9Fe
--B
Content-Type: text/html

<p>other</p>
--B--
--A--
`

// TestTextOfParts: Find shows the texts that are no files as the body; [imap.Connector.Read]
// shows none.
func TestTextOfParts(t *testing.T) {
	deep := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B0\n\n"
	for n := range 40 {
		deep += fmt.Sprintf("--B%d\nContent-Type: multipart/mixed; boundary=B%d\n\n", n, n+1)
	}
	deep += "--B40\nContent-Type: text/plain\n\ntoo deep\n--B40--\n"
	for name, tt := range map[string]struct {
		raw  string
		want any
	}{
		"nested":   {nested, "Grüße"},
		"too deep": {deep, nil},
		"a footer": {strings.Replace(nested, "--A--\n", "--A\nContent-Type: text/plain\n\nBuy more\n--A--\n", 1), "Grüße\nBuy more"},
		"no end":   {strings.Replace(nested, "--A--\n", "", 1), nil},
		"no text":  {"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=A\n\n--A\nContent-Type: text/html\n\n<p>\n--A--\n", nil},
		"cut":      {nested[:300], nil},
		"no parts": {"MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nx\n", nil},
		"plain":    {"\nHi\n", "Hi\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakeimap.Start(t, fakeimap.Options{})
			deliver(t, s, "INBOX", "<a@x>", "", tt.raw)
			c := connect(t, s, nil)
			found, err := c.Find(t.Context(), imap.Box{Name: "INBOX"}, imap.Box{}, []imap.Wanted{{MessageID: "<a@x>"}})
			if err != nil || found[0].Err != nil || len(found[0].Observation.Records) != 1 {
				t.Fatalf("%+v, %v; want the message", found, err)
			}
			if got := found[0].Observation.Records[0].Fields["body"]; got != tt.want {
				t.Errorf("body %q, want %q", got, tt.want)
			}
		})
	}
	s := fakeimap.Start(t, fakeimap.Options{})
	deliver(t, s, "INBOX", "<message.1@example.org>", "", nested)
	seen, err := connect(t, s, nil).Read(t.Context(), connectors.Query{Intent: numbered(imap.KindNamed, "update", 1)})
	if err != nil || len(seen.Records) != 1 || seen.Records[0].Fields["body"] != nil {
		t.Errorf("%+v, %v; want the message without a body", seen, err)
	}
}
