package imap

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/mailtext"
)

// maxFlags is how many flags or keywords one intent may name. Dovecot
// with maildir keeps 26 keywords in a mailbox.
const maxFlags = 50

// content is the content of a create.
type content struct {
	from    *mailtext.Address // nil for none
	to, cc  []mailtext.Address
	subject *string // nil for none
	body    string
	date    time.Time
	flags   flagSet
	headers []mailtext.Header // further ones, in the order of their names
}

// contentOf reads what a create expects and carries.
func contentOf(w intent.WriteIntent) (content, error) {
	var m content
	for _, name := range slices.Sorted(maps.Keys(w.Expect)) {
		if err := m.take(name, w.Expect[name]); err != nil {
			return content{}, err
		}
	}
	for name := range w.Payload {
		if name != "headers" {
			return content{}, wrong.Field("/payload/"+name, "has no place in a message", "headers alone")
		}
	}
	if headers := w.Payload["headers"]; headers != nil {
		var p *mailtext.Problem
		if m.headers, p = mailtext.Headers(headers, taken); p != nil {
			return content{}, wrong.Text("/payload/headers", p)
		}
	}
	return m, nil
}

func (m *content) take(name string, v any) error {
	path := "/expect/" + name
	var p *mailtext.Problem
	switch name {
	case "from":
		var from mailtext.Address
		from, p = mailtext.AddressOf(v)
		m.from = &from
	case "to":
		m.to, p = mailtext.Addresses(v, maxAddresses, mailtext.AddressOf)
	case "cc":
		m.cc, p = mailtext.Addresses(v, maxAddresses, mailtext.AddressOf)
	case "subject":
		var s string
		s, p = mailtext.Subject(v, mailtext.EndsLine)
		m.subject = &s
	case "body":
		m.body, p = mailtext.Text(v)
	case "date":
		m.date, p = dateOf(v)
	case "flags", "keywords":
		return m.flags.take(name, v)
	default:
		return wrong.Field(path, "is nothing that a create can store", "from, to, cc, subject, body, date, flags or keywords")
	}
	return wrong.Text(path, p)
}

func dateOf(v any) (time.Time, *mailtext.Problem) {
	s, isText := v.(string)
	t, err := time.Parse(time.RFC3339, s)
	_, offset := t.Zone()
	if err != nil || t.Nanosecond() != 0 || offset%60 != 0 {
		return time.Time{}, &mailtext.Problem{Is: "is not a date that a header can hold", Want: "whole seconds as in 2026-01-02T15:04:05+01:00", Value: isText, Example: "2026-01-02T15:04:05+01:00"}
	}
	return t, nil
}

// ownHeaders are written from other fields, or would change how the body is
// read.
var ownHeaders = []string{"date", "from", "to", "cc", "subject", "message-id", "mime-version", strings.ToLower(stampHeader)}

func taken(header string) *mailtext.Problem {
	if slices.Contains(ownHeaders, header) || strings.HasPrefix(header, "content-") {
		return &mailtext.Problem{Is: "is a header of our own", Want: "the field of expect for it, or nothing"}
	}
	return nil
}

// flagSet is the flags and keywords that an intent names; nil where it does
// not speak of them. IMAP keeps both in one set.
type flagSet struct {
	flags, keywords []imap.Flag
}

func (f *flagSet) take(name string, v any) error {
	path := "/expect/" + name
	list, ok := v.([]any)
	if !ok || len(list) > maxFlags {
		return wrong.Text(path, &mailtext.Problem{Is: "is not a list", Want: fmt.Sprintf("at most %d of them; [] for none", maxFlags), Value: ok})
	}
	set := make([]imap.Flag, 0, len(list))
	for i, item := range list {
		at := fmt.Sprintf("%s/%d", path, i)
		s, isText := item.(string)
		if name == "flags" && !slices.ContainsFunc(systemFlags, func(f imap.Flag) bool { return sameFlag(f, imap.Flag(s)) }) {
			return wrong.Text(at, &mailtext.Problem{Is: fmt.Sprintf("is %q", mailtext.Clip(fmt.Sprint(item))), Want: `\Seen, \Answered, \Flagged, \Deleted or \Draft; others are keywords`, Value: isText, Example: `\Seen`})
		}
		if name == "keywords" && !isKeyword(s) {
			return wrong.Text(at, &mailtext.Problem{Is: fmt.Sprintf("is %q", mailtext.Clip(fmt.Sprint(item))), Want: `printable ASCII without blanks and ( ) { % * " \ ]`, Value: isText, Example: "x"})
		}
		if !hasFlag(set, imap.Flag(s)) {
			set = append(set, imap.Flag(s))
		}
	}
	if name == "flags" {
		f.flags = set
	} else {
		f.keywords = set
	}
	return nil
}

var systemFlags = []imap.Flag{imap.FlagSeen, imap.FlagAnswered, imap.FlagFlagged, imap.FlagDeleted, imap.FlagDraft}

// isKeyword reports whether s is an atom. go-imap drops the connection over
// anything else, which would leave a write in doubt.
func isKeyword(s string) bool {
	return s != "" && len(s) <= 100 && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`(){%*"\]`, r)
	})
}

func isSystem(f imap.Flag) bool { return strings.HasPrefix(string(f), `\`) }

// sameFlag: the case of flags and keywords does not count.
func sameFlag(a, b imap.Flag) bool { return strings.EqualFold(string(a), string(b)) }

func hasFlag(set []imap.Flag, f imap.Flag) bool {
	return slices.ContainsFunc(set, func(g imap.Flag) bool { return sameFlag(f, g) })
}

// without is a less b.
func without(a, b []imap.Flag) []imap.Flag {
	return slices.DeleteFunc(slices.Clone(a), func(f imap.Flag) bool { return hasFlag(b, f) })
}

func sameFlags(a, b []imap.Flag) bool {
	return len(without(a, b)) == 0 && len(without(b, a)) == 0
}
