package redact

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unescaped returns the possible readings of a text that is quoted or encoded: HTML entities, URL
// escapes, and JSON and Go escapes decoded, and several of these. One letter can be written in
// too many ways to search for each, while each is decoded in one way. The text itself is not
// included.
func unescaped(text string) []string {
	if len(text) > maxText || !strings.ContainsAny(text, `&%\`) {
		return nil
	}
	all := []string{text}
	for i := 0; i < len(all); i++ {
		for _, read := range []func(string) string{html.UnescapeString, withoutPercents, withoutPluses, withoutSlashes} {
			if plain := read(all[i]); len(all) <= maxUnescaped && !slices.Contains(all, plain) {
				all = append(all, plain)
			}
		}
	}
	return all[1:]
}

// withoutPercents is a text with %20 decoded as in URLs; invalid escapes stay.
func withoutPercents(text string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(text, '%')
		if at < 0 {
			return b.String() + text
		}
		b.WriteString(text[:at])
		if code, ok := hexed(text[at+1:], 2); ok {
			b.WriteByte(byte(code))
			text = text[at+3:]
			continue
		}
		b.WriteByte('%')
		text = text[at+1:]
	}
}

// withoutPluses is the same with a plus decoded as a blank, as in forms.
func withoutPluses(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	return withoutPercents(strings.ReplaceAll(text, "+", " "))
}

func hexed(text string, digits int) (uint64, bool) {
	if len(text) < digits {
		return 0, false
	}
	code, err := strconv.ParseUint(text[:digits], 16, 32)
	return code, err == nil
}

// slashed are the letters that a backslash and one letter stand for. Any other letter stands for
// itself.
var slashed = map[byte]byte{'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

// withoutSlashes is a text with \" and \u00fc decoded as in JSON, Go and most languages.
func withoutSlashes(text string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(text, '\\')
		if at < 0 || at+1 == len(text) {
			return b.String() + text
		}
		b.WriteString(text[:at])
		letter := text[at+1]
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[letter]
		text = text[at+2:]
		if code, ok := hexed(text, digits); ok && digits > 0 {
			var used int
			if letter == 'x' { // a byte, of which several are one letter
				b.WriteByte(byte(code))
			} else {
				used = writeRune(&b, rune(code), text[digits:])
			}
			text = text[digits+used:]
			continue
		}
		if other, ok := slashed[letter]; ok {
			letter = other
		}
		b.WriteByte(letter)
	}
}

// writeRune writes a letter that JSON gives in one or two halves, and returns the length of the
// other half.
func writeRune(b *strings.Builder, r rune, follows string) (used int) {
	if utf16.IsSurrogate(r) && strings.HasPrefix(follows, `\u`) {
		if low, ok := hexed(follows[2:], 4); ok {
			if whole := utf16.DecodeRune(r, rune(low)); whole != utf8.RuneError {
				r, used = whole, 6
			}
		}
	}
	b.WriteRune(r)
	return used
}
