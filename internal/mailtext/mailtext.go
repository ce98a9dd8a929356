// Package mailtext holds the rules for what an intent puts into a message:
// addresses, the subject, texts and further headers. It refuses what could not
// be read back as it was asked for, or would become another header or another
// text on the way.
//
// It does not know which fields a connector has nor where they stand in an
// intent, which headers are the connector's own, what a stamp is, and how a
// message is sent, stored or found.
package mailtext

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/readback-go/readback/internal/visible"
)

const (
	// MaxHeaderText is the longest subject, address, Message-ID or header value
	// in bytes: RFC 5322 ends a line at 998, the field name included.
	MaxHeaderText = 900
	// maxShown is how much of a foreign text goes into an error.
	maxShown = 200
)

// Problem is why a value cannot be used. It is no error yet: the connector
// makes one of it, with the place of the field and a sentinel of its own.
type Problem struct {
	// At is the place below the field: "/0" in a list, "/Name" in an object, ""
	// for the value as a whole.
	At string
	// Is says what is wrong, beginning with a verb.
	Is string
	// Want says what would be right.
	Want string
	// Value says that another value of the same JSON type may be right, such as
	// Example where that is not nil.
	Value   bool
	Example any
}

// Below is the problem of an element, as one of the value that has it.
func (p *Problem) Below(at string) *Problem {
	whole := *p
	whole.At = at + p.At
	return &whole
}

// Subject takes one line that can be read back, in which no character is banned
// (see [EndsLine] and [IsControl]). "=?" would be taken for the beginning of an
// encoded word, and decoded.
func Subject(v any, banned func(rune) bool) (string, *Problem) {
	s, ok := v.(string)
	if !ok || len(s) > MaxHeaderText || !utf8.ValidString(s) || strings.ContainsFunc(s, banned) || strings.Contains(s, "=?") {
		return "", &Problem{Is: "cannot stand in a header", Want: fmt.Sprintf(`one line of at most %d bytes without "=?"`, MaxHeaderText), Value: ok, Example: "x"}
	}
	return s, nil
}

// Text takes text whose line ends are LF or CRLF; mail has no other.
func Text(v any) (string, *Problem) {
	s, ok := v.(string)
	if !ok || !utf8.ValidString(s) {
		return "", &Problem{Is: "is not text", Want: "a string", Value: ok}
	}
	if strings.Contains(strings.ReplaceAll(s, "\r\n", "\n"), "\r") {
		return "", &Problem{Is: "has a CR that ends no line", Want: "LF or CRLF at the end of lines", Value: true}
	}
	return s, nil
}

// EndsLine is true for what no header line survives: CR, LF and NUL.
func EndsLine(r rune) bool { return r == '\r' || r == '\n' || r == 0 }

// IsControl is true for every control character of ASCII.
func IsControl(r rune) bool { return r < ' ' || r == 0x7f }

// messageIDForm is a Message-ID as RFC 5322 writes it today: no blanks, no
// comments, no brackets within.
var messageIDForm = regexp.MustCompile(`^<[!-;=?A-~]+@[!-;=?A-~]+>$`)

// IsMessageID reports whether s is a Message-ID in its angle brackets, of at
// most [MaxHeaderText] bytes.
func IsMessageID(s string) bool { return len(s) <= MaxHeaderText && messageIDForm.MatchString(s) }

// MessageIDOf reads a Message-ID that an intent names.
func MessageIDOf(v any) (string, *Problem) {
	id, isText := v.(string)
	if !IsMessageID(id) {
		return "", &Problem{Is: fmt.Sprintf("is %q", Clip(fmt.Sprint(v))), Want: "a Message-ID in its angle brackets, <left@right>", Value: isText, Example: "<x@example.org>"}
	}
	return id, nil
}

// Clip makes text from strangers fit to be shown: printable, valid, and of at
// most 200 bytes with a mark where more was cut off.
func Clip(s string) string {
	return visible.Cut(strings.Map(func(r rune) rune {
		if IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?")), maxShown)
}
