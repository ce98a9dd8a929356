package imap_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/intent"
	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
	"github.com/readback-go/readback/internal/verifytest"
)

// No wrong state of a mailbox is called verified, and no right one is refused:
// in memory, and on a real server.
func TestAuditInMemory(t *testing.T) {
	t.Run(imap.KindNamed, func(t *testing.T) { audit(t, inMemory, imap.KindNamed, false) })
	t.Run(imap.KindMessage, func(t *testing.T) { audit(t, inMemory, imap.KindMessage, false) })
}

func TestAuditDovecot(t *testing.T) { audit(t, onDovecot(t), imap.KindNamed, true) }

func audit(t *testing.T, start starter, kind string, condStore bool) {
	h := verifytest.Harness{Suite: suite(start, kind, condStore), Legitimate: unlike}
	h.Suite.Open = func(t *testing.T) *connectortest.Fixture {
		s := start(t, fakeimap.Options{})
		f := fixture(t, s, kind, condStore)
		b := bench{t, s}
		f.Put = b.put
		f.Alter = b.alter
		return f
	}
	verifytest.Audit(t, h)
}

// unlike is what a mailbox shows otherwise and has right.
var unlike = []verifytest.Difference{{
	Name:     "no-keywords",
	Reason:   "a message without keywords has none; that is the empty list",
	Stored:   func(w *intent.WriteIntent) { delete(w.Expect, "keywords") },
	Declared: func(w *intent.WriteIntent) { w.Expect["keywords"] = []any{} },
}}

// put delivers a message with another's stamp, or none.
func (b bench) put(fields intent.Fields, stamp string) error {
	var raw strings.Builder
	fmt.Fprintf(&raw, "Message-ID: %s\r\nSubject: %s\r\nFrom: %s\r\n", fields["message_id"], fields["subject"], fields["from"])
	if stamp != "" {
		fmt.Fprintf(&raw, "X-Readback-Stamp: %s\r\n", stamp)
	}
	if to, ok := fields["to"].([]any); ok {
		fmt.Fprintf(&raw, "To: %s\r\n", to[0])
	}
	fmt.Fprint(&raw, "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGrüße,\r\nAlice\r\n")
	_, err := b.s.Deliver(fields["mailbox"].(string), []byte(raw.String()), `\Seen`, "todo")
	return err
}

// alter sets the flags and keywords of a message.
func (b bench) alter(key, fields intent.Fields) error {
	b.t.Helper()
	for name := range fields {
		if name != "flags" && name != "keywords" {
			return fmt.Errorf("the %s of a message cannot be changed", name)
		}
	}
	for _, m := range b.records(key) {
		var marks []string
		for _, name := range []string{"flags", "keywords"} {
			list := m.Fields[name]
			if to, named := fields[name]; named {
				list = to
			}
			marks = append(marks, flagNames(list)...)
		}
		b.mark(key, m.Ref, marks...)
	}
	return nil
}
