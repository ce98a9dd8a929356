// Package visible decides what of a text that others wrote passes on to a model, a
// terminal, a page or a log: every character that a reader cannot see is written as
// an escape such as \u200b, texts are cut where they are long, and the names that a
// destination gives a record pass in a plain alphabet alone.
//
// It does not know what is sensitive (package redact does), and makes no text true:
// what passes is still the text of others.
package visible

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hidden reports whether a character is one that a reader cannot see or cannot tell
// from a blank: control and format characters, joiners, bidirectional controls, tags,
// variation selectors, fillers, blanks other than the one of ASCII, line separators,
// private use, and what is not assigned.
func Hidden(r rune) bool {
	if r < 0x7f { // nearly all there is, and the tables below are slow
		return r < ' '
	}
	return !unicode.IsPrint(r) || r == braille || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// braille is the pattern without a dot, which is drawn as a blank.
const braille = '\u2800'

// Text is a text in one line in which everything can be seen, and no letter has more
// than a few marks. Text of its own result is the same again.
func Text(s string) string { return escape(s, Hidden) }

// Lines is [Text] that keeps its line ends, as LF.
func Lines(s string) string {
	if !strings.Contains(s, "\n") {
		return Text(s)
	}
	return escape(strings.ReplaceAll(s, "\r\n", "\n"), func(r rune) bool { return r != '\n' && Hidden(r) })
}

// Clip is [Text] of at most n characters, the last of which is "…" where more was cut
// off.
func Clip(s string, n int) string { return cut(Text(s[:within(s, n)]), s, n) }

// ClipLines is [Lines] of at most n characters, as [Clip] is of [Text].
func ClipLines(s string, n int) string { return cut(Lines(s[:within(s, n)]), s, n) }

// within is how many bytes of s can matter for a result of n characters: a character
// or a broken byte becomes one at the least, and CRLF becomes one.
func within(s string, n int) int { return min(len(s), 2*utf8.UTFMax*(n+1)) }

// Cut is s in at most n bytes, which end in "…" where more was cut off. It escapes nothing: it is
// for a text that is quoted, or escaped later.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}

func cut(clean, s string, n int) string {
	if utf8.RuneCountInString(clean) <= n && within(s, n) == len(s) {
		return clean
	}
	runes := []rune(clean)
	return string(runes[:min(len(runes), n-1)]) + "…"
}

// escape writes out the characters that must not pass, and bytes that are no UTF-8.
func escape(s string, hidden func(rune) bool) string {
	var over marks
	if !strings.ContainsFunc(s, func(r rune) bool { return over.tooMany(r) || hidden(r) }) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	over = 0
	for i, r := range s {
		switch many := over.tooMany(r); {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
			over = 0
		case !many && !hidden(r):
			b.WriteRune(r)
		default:
			writeEscape(&b, r)
			over = 0
		}
	}
	return b.String()
}

// marks counts the marks over and under one letter. Many of them are drawn far over the
// lines around it.
type marks int

// maxMarks is more than a letter of any written language has.
const maxMarks = 10

// tooMany counts the next character, and reports whether it is a mark too many.
func (n *marks) tooMany(r rune) bool {
	switch {
	case r < 0x7f:
		*n = 0
	case unicode.In(r, unicode.Mn, unicode.Me):
		*n++
	case !unicode.Is(unicode.Cf, r): // a joiner leaves its letter as it is
		*n = 0
	}
	return *n > maxMarks
}

func writeEscape(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\t':
		b.WriteString(`\t`)
	case r < 0x80:
		fmt.Fprintf(b, `\x%02x`, r)
	case r <= 0xffff:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// Data is a text that a caller asked for: it passes as it is, but for what no written
// language needs there. Line ends, tabs, blanks of any kind, private use and
// characters that are not assigned yet stay. So does a joiner, a mark of direction or
// a soft hyphen that is alone between two characters that are drawn, a variation
// selector behind one that has variants, the tags of a flag, and one byte order mark at
// the beginning. What is left are escape sequences, overrides of the direction, and texts
// written in characters that are not drawn.
func Data(s string) string {
	var over marks
	if !strings.ContainsFunc(s, func(r rune) bool { return over.tooMany(r) || undrawn(r) }) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	behind, before := nothing, rune(0)
	over = 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		next, _ := utf8.DecodeRuneInString(s[i+size:]) // at the end one that is drawn
		switch many := over.tooMany(r); {
		case many:
			writeEscape(&b, r)
			behind, over = nothing, 0
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
			behind = nothing
		case r == flag:
			if tags := flagTags.FindString(s[i:]); tags != "" {
				size = len(tags)
			}
			b.WriteString(s[i : i+size])
			behind = drawn
		case !undrawn(r):
			b.WriteRune(r)
			behind = drawn
		case unicode.Is(unicode.Variation_Selector, r) && behind == drawn && varies(before, r) && (!undrawn(next) || next == joiner):
			b.WriteRune(r)
			behind = selector
		case script(r) && behind == drawn && !undrawn(next) && (r == softHyphen || !between(before, next)), r == joiner && behind == selector && !undrawn(next), i == 0 && r == '\ufeff':
			b.WriteRune(r)
			behind = nothing
		default:
			writeEscape(&b, r)
			behind, over = nothing, 0
		}
		before = r
		i += size
	}
	return b.String()
}

// What is before a character: a character that is drawn, one with its selector,
// or one that is not drawn.
const (
	nothing = iota
	drawn
	selector
)

const (
	joiner     = '\u200d'
	softHyphen = '\u00ad'
)

// flag is the black flag, and flagTags that of a part of a country: its letters as
// tags behind the black one, and the tag that ends them.
const flag = '\U0001F3F4'

var flagTags = regexp.MustCompile(`^\x{1F3F4}[\x{E0030}-\x{E0039}\x{E0061}-\x{E007A}]{1,6}\x{E007F}`)

// script reports whether a character that is not drawn changes how the letters beside
// it are: joiners, the marks of direction, the soft hyphen, the combining joiner.
func script(r rune) bool {
	switch r {
	case '\u200c', '\u200d', '\u200e', '\u200f', '\u061c', softHyphen, '\u034f':
		return true
	}
	return false
}

// varies reports whether a character can have the variant that a selector chooses.
// Letters of most scripts and blanks have none: a selector behind each of them would be
// a text that is not drawn.
func varies(r, selector rune) bool {
	switch {
	case selector >= 0xe0100:
		return unicode.Is(unicode.Ideographic, r)
	case selector < 0xfe00:
		return unicode.Is(unicode.Mongolian, r)
	case unicode.In(r, unicode.L, unicode.M):
		return r == 'ℹ' || unicode.In(r, unicode.Ideographic, unicode.Myanmar, unicode.Phags_Pa, unicode.Manichaean)
	}
	return !unicode.IsSpace(r)
}

// between reports whether two characters are letters or digits of ASCII, which no joiner
// and no mark of direction between them changes.
func between(before, next rune) bool {
	plain := func(r rune) bool { return r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
	return plain(before) && plain(next)
}

// undrawn reports whether a character is Hidden, and neither a blank that takes room
// nor one whose look others decide.
func undrawn(r rune) bool {
	switch {
	case !Hidden(r), unicode.Is(unicode.Zs, r), r == '\n', r == '\r', r == '\t':
		return false
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Cs, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point):
		return true
	}
	return r == braille || r >= 0xe0000 && r <= 0xe0fff
}

// Document is a JSON document with each text and each name in it as clean makes it.
// Numbers, order, and what clean leaves alone stay to the byte. What is no JSON is a
// text of it.
func Document(raw []byte, clean func(string) string) []byte {
	if !json.Valid(raw) {
		text, _ := json.Marshal(clean(string(raw))) // a string always can be
		return text
	}
	var b bytes.Buffer
	for len(raw) > 0 {
		begin := bytes.IndexByte(raw, '"')
		if begin < 0 {
			break
		}
		end := begin + 1
		for raw[end] != '"' { // it is valid: each text ends
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		end++
		b.Write(raw[:begin])
		b.Write(literal(raw[begin:end], clean))
		raw = raw[end:]
	}
	b.Write(raw)
	return b.Bytes()
}

// literal is a text of JSON as clean makes it.
func literal(text []byte, clean func(string) string) []byte {
	var s string
	if json.Unmarshal(text, &s) != nil {
		return text // no text of a valid document
	}
	if again := clean(s); again != s || strings.Contains(s, "\ufffd") { // which is what half a pair is read as
		text, _ = json.Marshal(again)
	}
	return text
}

// JSON is a document of JSON whose bytes hold no character that cannot be seen but
// line ends, and no flood of marks: they are escapes of JSON. It decodes to the same
// value.
func JSON(text []byte) []byte {
	var over marks
	if !bytes.ContainsFunc(text, func(r rune) bool { return over.tooMany(r) || beyond(r) }) {
		return text
	}
	var b bytes.Buffer
	over = 0
	for _, r := range string(text) {
		switch many := over.tooMany(r); {
		case !many && !beyond(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.Bytes()
}

// beyond is a hidden character beyond ASCII: those of ASCII an encoder of JSON has
// escaped.
func beyond(r rune) bool { return r >= 0x7f && Hidden(r) }

const (
	// MaxRef is how long a destination's own id of a record may be where a model
	// reads it: twice a SHA-256 in hex, and no room for a letter.
	MaxRef = 200
	// MaxURL is how long its address may be there. Those of real records have less
	// than half.
	MaxURL = 500
)

var (
	refForm = regexp.MustCompile(`^[A-Za-z0-9/_.#][A-Za-z0-9._:/@#+=~-]*$`)
	urlForm = regexp.MustCompile(`^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?([/?#][A-Za-z0-9._~:/?#@&+,;=$%-]*)?$`)
)

// IsRef reports whether a destination's own id of a record is plain: one word, in
// which nothing ends a text, a tag or a link.
func IsRef(s string) bool { return len(s) <= MaxRef && refForm.MatchString(s) }

// IsURL reports whether an address is plain: of the web, without a user, in the
// characters of [IsRef] and the few that separate the parts of an address.
func IsURL(s string) bool {
	if len(s) > MaxURL || !urlForm.MatchString(s) {
		return false
	}
	u, err := url.Parse(s)
	return err == nil && u.User == nil && u.Host != ""
}
