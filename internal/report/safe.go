package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Safe makes text fit for a terminal: everything that is not a letter, mark,
// digit, symbol, punctuation or blank (control characters, escape sequences,
// bidirectional overrides, invisible characters, line ends, broken UTF-8) is
// written out as an escape, so that one sees that it is there.
func Safe(s string) string {
	if !strings.ContainsFunc(s, unfit) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unfit(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

func unfit(r rune) bool { return !unicode.IsPrint(r) }

// clip is Safe text of at most n characters.
func clip(s string, n int) string {
	s = Safe(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// JSON writes a value as indented JSON, in which every character that is not
// fit for a terminal is an escape. It is the same value to whoever decodes it.
func JSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escaped(b.Bytes()))
	return err
}

// escaped replaces unfit characters beyond ASCII, which stand inside strings
// only. Those of ASCII the encoder has escaped.
func escaped(text []byte) []byte {
	if !bytes.ContainsFunc(text, beyond) {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case !beyond(r):
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

func beyond(r rune) bool { return r >= 0x7f && unfit(r) }
