package mail_test

import (
	"bytes"
	"maps"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/intent"
)

// FuzzPrepare: whatever an intent holds, the mail that comes of it has the
// headers that it should have, each once, and its one text.
func FuzzPrepare(f *testing.F) {
	f.Add("Alice A <a@example.org>", "b@example.org", "Hello", "Hi.\n", "X-A", "b")
	f.Add("a@b>\r\nBcc: <c@d", "\"x\" <a@b>", "=?utf-8?q?x?=", ".\r\n.\r\n", "Bcc", "x\r\ny: z")
	f.Add("ü, (x) <a@b>", "a.b@c", "  ", "\r", "Subject", "\x00")
	c, err := mail.New(good())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, from, to, subject, body, name, value string) {
		w := letter()
		w.Key = intent.Fields{"account": "alice@example.org"}
		w.Expect = intent.Fields{"from": from, "to": []any{to}, "subject": subject, "body": body}
		w.Payload = intent.Fields{"headers": map[string]any{name: value}}
		built, err := c.Prepare(t.Context(), connectors.Request{Intent: w, Stamp: w.Stamp()})
		if err != nil {
			return
		}
		_, raw, _ := bytes.Cut(built, []byte("\n"))
		m, err := netmail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%v in\n%s", err, raw)
		}
		want := []string{"Content-Transfer-Encoding", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Subject", "To", "X-Readback-Stamp"}
		given := slices.DeleteFunc(slices.Sorted(maps.Keys(m.Header)), func(h string) bool { return strings.EqualFold(h, name) })
		if d := cmp.Diff(want, given); d != "" {
			t.Errorf("the headers differ (-want +got):\n%s\n%s", d, raw)
		}
		for h, values := range m.Header {
			if len(values) != 1 {
				t.Errorf("%s is in it %d times:\n%s", h, len(values), raw)
			}
		}
		if got, err := m.Header.AddressList("To"); err != nil || len(got) != 1 {
			t.Errorf("To is %v, %v; want one address", got, err)
		}
		if got := plainText(t, m.Header, m.Body); lf(got) != lf(body) {
			t.Errorf("the text is %q, want %q", got, body)
		}
	})
}
