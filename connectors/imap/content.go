package imap

import (
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-imap/v2"

	"github.com/readback-go/readback/intent"
)

// content is what a create says.
type content struct {
	from    string // as it stands in the header; "" for none
	to, cc  []string
	subject *string // nil for none
	body    string
	date    time.Time
	flags   flagSet
	headers []headerLine // further ones, in the order of their names
}

type headerLine struct{ name, value string }

// contentOf reads what a create expects and carries.
func contentOf(w intent.WriteIntent) (content, error) {
	var m content
	for _, name := range sortedNames(w.Expect) {
		if err := m.take(name, w.Expect[name]); err != nil {
			return content{}, err
		}
	}
	for name := range w.Payload {
		if name != "headers" {
			return content{}, unusable("/payload/"+name, "has no place in a message", "headers alone")
		}
	}
	headers, err := furtherHeaders(w.Payload["headers"])
	m.headers = headers
	return m, err
}

func sortedNames(f map[string]any) []string {
	names := make([]string, 0, len(f))
	for n := range f {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func (m *content) take(name string, v any) (err error) {
	path := "/expect/" + name
	switch name {
	case "from":
		m.from, err = addressLine(path, v)
	case "to":
		m.to, err = addressLines(path, v)
	case "cc":
		m.cc, err = addressLines(path, v)
	case "subject":
		var s string
		s, err = subjectText(path, v)
		m.subject = &s
	case "body":
		m.body, err = bodyText(path, v)
	case "date":
		m.date, err = dateOf(path, v)
	case "flags", "keywords":
		err = m.flags.take(name, v)
	default:
		err = unusable(path, "is nothing that a create can store", "from, to, cc, subject, body, date, flags or keywords")
	}
	return err
}

// addressLine turns an address as records show it into one as headers do. The
// only spelling taken is the one that a read gives back, since another could
// never be found equal.
func addressLine(path string, v any) (string, error) {
	const want = `"a@example.org" or "Alice A <a@example.org>"`
	s, ok := v.(string)
	if !ok || len(s) > maxHeaderText || !utf8.ValidString(s) {
		return "", unusable(path, "is not an address", want)
	}
	name, addr := "", s
	if i := strings.LastIndex(s, " <"); i > 0 && strings.HasSuffix(s, ">") {
		name, addr = s[:i], s[i+2:len(s)-1]
	}
	line := (&mail.Address{Name: name, Address: addr}).String()
	back, err := mail.ParseAddress(line)
	quoted := len(name) > 1 && strings.HasPrefix(name, `"`) && strings.HasSuffix(name, `"`) // as headers write it: they would stand in the name
	if err != nil || quoted || shownAddress(back) != s || strings.ContainsAny(s, "\r\n\x00") {
		return "", unusable(path, fmt.Sprintf("is %q", clip(s)), want)
	}
	return line, nil
}

// shownAddress is an address as records show it.
func shownAddress(a *mail.Address) string {
	if a.Name == "" {
		return a.Address
	}
	return a.Name + " <" + a.Address + ">"
}

func addressLines(path string, v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > maxAddresses {
		return nil, unusable(path, "is not a list of addresses", fmt.Sprintf("1 to %d of them; leave the field out where there is none", maxAddresses))
	}
	lines := make([]string, len(list))
	for i, item := range list {
		line, err := addressLine(fmt.Sprintf("%s/%d", path, i), item)
		if err != nil {
			return nil, err
		}
		lines[i] = line
	}
	return lines, nil
}

// subjectText takes one line that can be read back. "=?" would be taken for
// the beginning of an encoded word, and decoded.
func subjectText(path string, v any) (string, error) {
	s, ok := v.(string)
	if !ok || len(s) > maxHeaderText || !utf8.ValidString(s) || strings.ContainsAny(s, "\r\n\x00") || strings.Contains(s, "=?") {
		return "", unusable(path, "cannot stand in a header", fmt.Sprintf(`one line of at most %d bytes without "=?"`, maxHeaderText))
	}
	return s, nil
}

// bodyText takes text whose line ends are LF or CRLF; mail has no other.
func bodyText(path string, v any) (string, error) {
	s, ok := v.(string)
	if !ok || !utf8.ValidString(s) {
		return "", unusable(path, "is not text", "a string")
	}
	if strings.Contains(strings.ReplaceAll(s, "\r\n", "\n"), "\r") {
		return "", unusable(path, "has a CR that ends no line", "LF or CRLF at the end of lines")
	}
	return s, nil
}

func dateOf(path string, v any) (time.Time, error) {
	s, _ := v.(string)
	t, err := time.Parse(time.RFC3339, s)
	_, offset := t.Zone()
	if err != nil || t.Nanosecond() != 0 || offset%60 != 0 {
		return time.Time{}, unusable(path, "is not a date that a header can hold", "whole seconds as in 2026-01-02T15:04:05+01:00")
	}
	return t, nil
}

// ownHeaders are written from other fields, or would change how the body is
// read.
var ownHeaders = []string{"date", "from", "to", "cc", "subject", "message-id", "mime-version", strings.ToLower(stampHeader)}

func furtherHeaders(v any) ([]headerLine, error) {
	if v == nil {
		return nil, nil
	}
	const path = "/payload/headers"
	m, ok := v.(map[string]any)
	if !ok || len(m) > maxHeaders {
		return nil, unusable(path, "is not an object of headers", fmt.Sprintf("at most %d names with their text", maxHeaders))
	}
	lines := make([]headerLine, 0, len(m))
	for _, name := range sortedNames(m) {
		lower := strings.ToLower(name)
		value, isText := m[name].(string)
		switch {
		case name == "" || len(name) > 76 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }):
			return nil, unusable(path, fmt.Sprintf("has the name %q", clip(name)), "header names")
		case slices.Contains(ownHeaders, lower) || strings.HasPrefix(lower, "content-"):
			return nil, unusable(path+"/"+name, "is a header of our own", "the field of expect for it, or nothing")
		case !isText || len(value) > maxHeaderText || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
			return nil, unusable(path+"/"+name, "cannot stand in a header", fmt.Sprintf("one line of at most %d printable ASCII characters", maxHeaderText))
		}
		lines = append(lines, headerLine{name, value})
	}
	return lines, nil
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
		return unusable(path, "is not a list", fmt.Sprintf("at most %d of them; [] for none", maxFlags))
	}
	set := make([]imap.Flag, 0, len(list))
	for i, item := range list {
		at := fmt.Sprintf("%s/%d", path, i)
		s, _ := item.(string)
		if name == "flags" && !slices.ContainsFunc(systemFlags, func(f imap.Flag) bool { return sameFlag(f, imap.Flag(s)) }) {
			return unusable(at, fmt.Sprintf("is %q", clip(fmt.Sprint(item))), `\Seen, \Answered, \Flagged, \Deleted or \Draft; others are keywords`)
		}
		if name == "keywords" && !isKeyword(s) {
			return unusable(at, fmt.Sprintf("is %q", clip(fmt.Sprint(item))), `printable ASCII without blanks and ( ) { % * " \ ]`)
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
