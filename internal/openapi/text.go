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
	bare  = regexp.MustCompile(`^[A-Za-z_$/][A-Za-z0-9_$/.-]*$`)
	word  = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	hole  = regexp.MustCompile(`\{([^{}]*)\}`)
	words = regexp.MustCompile(`[A-Z]*[a-z0-9]+|[A-Z]+`)
)

// pieces are the words of a name in whatever style, in lower case.
func pieces(name string) []string {
	return strings.Fields(strings.ToLower(strings.Join(words.FindAllString(name, -1), " ")))
}

func snake(name string) string { return strings.Join(pieces(name), "_") }

// quoted writes a value of YAML: names and paths as they are, all else quoted.
func quoted(s string) string {
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
func literal(s string) string { return quoted(unbraced.Replace(s)) }

var unbraced = strings.NewReplacer("{", "{{", "}", "}}")

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

// step is a member in a JSONPath.
func step(name string) string {
	if word.MatchString(name) && (name[0] < '0' || name[0] > '9') {
		return "." + name
	}
	return `['` + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name) + `']`
}

// pathTo is the JSONPath of a member as a value of YAML.
func pathTo(name string) string { return quoted("$" + step(name)) }

func singular(word string) string {
	switch {
	case strings.HasSuffix(word, "ies"):
		return strings.TrimSuffix(word, "ies") + "y"
	case strings.HasSuffix(word, "ses"), strings.HasSuffix(word, "xes"):
		return strings.TrimSuffix(word, "es")
	case strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss"):
		return strings.TrimSuffix(word, "s")
	}
	return word
}
