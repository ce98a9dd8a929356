package openapi

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// page is the text of a draft, line by line.
type page struct{ text string }

// line writes one line, and why it is what it is: nothing, where the document says so.
func (p *page) line(depth int, text, guess string) {
	p.text += strings.Repeat("  ", depth) + text
	if guess != "" {
		p.text += "  # guess: " + plain(guess)
	}
	p.text += "\n"
}

func (p *page) unknown(depth int, format string, args ...any) {
	p.text += strings.Repeat("  ", depth) + "# not known: " + plain(fmt.Sprintf(format, args...)) + "\n"
}

// longest is how much of a vendor's text a line takes.
const longest = 300

// plain is text for a comment: one line, whatever the vendor wrote.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > longest {
		s = string(runes[:longest]) + "…"
	}
	return s
}

var (
	bare = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	word = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	hole = regexp.MustCompile(`\{([^{}]*)\}`)
)

// scalarText writes a value of YAML: names as they are, all else quoted.
func scalarText(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return strconv.Quote(s)
	}
	if bare.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

// literal is text of the vendor's in a place where placeholders are read.
func literal(s string) string {
	return scalarText(strings.NewReplacer("{", "{{", "}", "}}").Replace(s))
}

// called is the name of a field for a member, whose own may have characters that no name has. It is
// "" for what is not readable, and what has braces, which the format does not take in the name of a member.
func called(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == '{' || r == '}' }) {
		return ""
	}
	if word.MatchString(name) {
		return name
	}
	return strings.Trim(strings.Map(func(r rune) rune {
		if r < 128 && word.MatchString(string(r)) {
			return r
		}
		return '_'
	}, name), "_")
}

var plainMember = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// bareJSONPath is the JSONPath of members.
func bareJSONPath(names ...string) string {
	var b strings.Builder
	b.WriteByte('$')
	for _, n := range names {
		if plainMember.MatchString(n) {
			b.WriteString("." + n)
		} else {
			b.WriteString(`['` + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(n) + `']`)
		}
	}
	return b.String()
}

// pathTo is the same as a value of YAML.
func pathTo(names ...string) string { return scalarPath(bareJSONPath(names...)) }

// scalarPath writes a JSONPath, quoted only where YAML needs it.
func scalarPath(p string) string {
	if strings.Trim(p, "$._ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == "" {
		return p
	}
	return strconv.Quote(p)
}
