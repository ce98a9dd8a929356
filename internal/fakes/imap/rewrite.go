package imap

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// mailboxOf is the mailbox that a command names; it may be quoted, or a
// literal.
func mailboxOf(c *command) string {
	_, rest, _ := strings.Cut(c.texts[0], " ")
	_, rest, _ = strings.Cut(rest, " ")
	if rest == "" && len(c.literals) > 0 {
		return string(c.literals[0])
	}
	if strings.HasPrefix(rest, `"`) {
		name, err := strconv.QuotedPrefix(rest)
		if err == nil {
			name, _ = strconv.Unquote(name)
			return name
		}
	}
	name, _, _ := strings.Cut(rest, " ")
	if strings.EqualFold(name, "INBOX") {
		return "INBOX"
	}
	return name
}

var storeMark = regexp.MustCompile(`(?i)\+FLAGS(\.SILENT)? \(\\Deleted\)$`)

func marksDeleted(c *command) bool {
	return c.name == "UID STORE" && storeMark.MatchString(c.texts[0])
}

// flagList is the list of flags in an APPEND or a STORE. A condition (UNCHANGEDSINCE), also in
// brackets, precedes it.
var flagList = regexp.MustCompile(`\([^()]*\)( ?)$`)

// dropKeywords leaves the keywords out of a list of flags.
func dropKeywords(c *command) {
	eachKeyword(c, func(string) string { return "" })
}

// normalise writes what a client sent in another form: the subject of an APPEND
// in capitals, the keywords of a STORE with a prefix.
func normalise(c *command) {
	if c.name == "UID STORE" {
		eachKeyword(c, func(k string) string { return "nt-" + k })
		return
	}
	for i, literal := range c.literals {
		if m := subjectLine.FindIndex(literal); m != nil {
			c.literals[i] = append(append(bytes.Clone(literal[:m[0]]), bytes.ToUpper(literal[m[0]:m[1]])...), literal[m[1]:]...)
		}
	}
}

var subjectLine = regexp.MustCompile(`(?m)^Subject: .*$`)

func eachKeyword(c *command, change func(string) string) {
	c.texts[0] = flagList.ReplaceAllStringFunc(c.texts[0], func(list string) string {
		inner, after, _ := strings.Cut(strings.TrimPrefix(list, "("), ")")
		var flags []string
		for _, f := range strings.Fields(inner) {
			if !strings.HasPrefix(f, `\`) {
				f = change(f)
			}
			if f != "" {
				flags = append(flags, f)
			}
		}
		return "(" + strings.Join(flags, " ") + ")" + after
	})
}

func number(digits string) uint32 {
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}
