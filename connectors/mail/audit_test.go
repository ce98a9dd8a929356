package mail_test

import (
	"fmt"
	"maps"
	"mime"
	netmail "net/mail"
	"strconv"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/intent"
	fakemail "github.com/readback-go/readback/internal/fakes/mail"
	"github.com/readback-go/readback/internal/verifytest"
)

// TestAudit: no wrong state of the mailbox is called verified, and no right one
// is refused.
func TestAudit(t *testing.T) {
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
			verifytest.Audit(t, verifytest.Harness{
				Suite: connectortest.Harness{
					Open: func(t *testing.T) *connectortest.Fixture {
						s := fakemail.Start(t, fakemail.Options{InProcess: true})
						b := bench{t, s, c.kind, c.mailbox, false}
						f := fixture(t, b, c.options(s))
						f.Put, f.Alter = b.put, b.alter
						return f
					},
					Writes:   []intent.WriteType{intent.Create},
					Lacks:    lacks(c.kind),
					Variants: variants(),
				},
				Lacks: map[verifytest.State]string{
					verifytest.Collateral: "a mail is created whole, and nothing else is in it",
				},
			})
		})
	}
}

// put delivers a mail with these fields and this stamp, or none.
func (b bench) put(fields intent.Fields, stamp string) error {
	var raw strings.Builder
	line := func(name string, v any) {
		if v != nil {
			fmt.Fprintf(&raw, "%s: %s\r\n", name, v)
		}
	}
	line("Message-ID", fields["message_id"])
	if stamp != "" {
		line("X-Readback-Stamp", stamp)
	}
	if s, ok := fields["subject"].(string); ok {
		line("Subject", mime.QEncoding.Encode("utf-8", s))
	}
	for name, field := range map[string]string{"From": "from", "To": "to", "Cc": "cc"} {
		text, err := headerOf(fields[field])
		if err != nil {
			return err
		}
		if text != "" {
			line(name, text)
		}
	}
	body, _ := fields["body"].(string)
	fmt.Fprint(&raw, "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n", strings.ReplaceAll(lf(body), "\n", "\r\n"), "\r\n")
	_, err := b.s.Mailbox.Deliver(b.mailbox, []byte(raw.String()), `\Seen`)
	return err
}

// headerOf is an address, or a list of them, as headers have it.
func headerOf(v any) (string, error) {
	list, ok := v.([]any)
	if s, one := v.(string); one {
		list, ok = []any{s}, true
	}
	if !ok && v != nil {
		return "", fmt.Errorf("%v is no address", v)
	}
	var lines []string
	for _, item := range list {
		s, _ := item.(string)
		a := &netmail.Address{Address: s}
		if name, rest, named := strings.Cut(s, " <"); named {
			a = &netmail.Address{Name: name, Address: strings.TrimSuffix(rest, ">")}
		}
		if back, err := netmail.ParseAddress(a.String()); err != nil || *back != *a {
			return "", fmt.Errorf("%q is no address", s)
		}
		lines = append(lines, a.String())
	}
	return strings.Join(lines, ", "), nil
}

// alter replaces a mail by another: none can be changed.
func (b bench) alter(key, fields intent.Fields) error {
	b.t.Helper()
	for _, r := range b.records(key) {
		_, uid, _ := strings.Cut(r.Ref, ":")
		n, err := strconv.ParseUint(uid, 10, 32)
		if err != nil {
			return err
		}
		changed := maps.Clone(r.Fields)
		for name, v := range fields {
			if _, text := v.(string); !text && name != "to" && name != "cc" {
				return fmt.Errorf("no mail has a %s that is %v", name, v)
			}
			changed[name] = v
		}
		if err := b.put(changed, r.Stamp); err != nil {
			return err
		}
		if err := b.s.Mailbox.Remove(b.mailbox, uint32(n)); err != nil {
			return err
		}
	}
	return nil
}
