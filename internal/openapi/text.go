package openapi

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// guess is the comment that says why a line is what it is: nothing, where the document says so.
func guess(why string) string {
	if why == "" {
		return ""
	}
	return "  # guess: " + plain(why)
}

// listOf writes a list of YAML, without its brackets.
func listOf(all []string, how func(string) string) string {
	var texts []string
	for _, one := range all {
		texts = append(texts, how(one))
	}
	return strings.Join(texts, ", ")
}

// longest is how much of a vendor's text a line takes.
const longest = 300

// plain is text for a comment: one line, whatever the vendor wrote.
func plain(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(s); len(runes) > longest {
		s = string(runes[:longest]) + "…"
	}
	return s
}

var (
	bare   = regexp.MustCompile(`^[A-Za-z_$/][A-Za-z0-9_$/.-]*$`)
	word   = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	spoken = regexp.MustCompile(`^(?i:true|false|null|yes|no|on|off|y|n)$`)
	blank  = regexp.MustCompile(`(?m)^\s*\n`)
	other  = regexp.MustCompile(`[^A-Za-z0-9_]`)
	hole   = regexp.MustCompile(`\{([^{}]*)\}`)
	words  = regexp.MustCompile(`[A-Z]*[a-z0-9]+|[A-Z]+`)
)

// pieces are the words of a name in whatever style, in lower case.
func pieces(name string) []string {
	return strings.Fields(strings.ToLower(strings.Join(words.FindAllString(name, -1), " ")))
}

func snake(name string) string { return strings.Join(pieces(name), "_") }

// quoted writes a value of YAML: names and paths as they are, all else quoted.
func quoted(s string) string {
	if bare.MatchString(s) && !spoken.MatchString(s) {
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
	return strings.Trim(other.ReplaceAllString(name, "_"), "_")
}

// step is a member in a JSONPath, nothing for no member.
func step(name string) string {
	if name == "" {
		return ""
	}
	if word.MatchString(name) && (name[0] < '0' || name[0] > '9') {
		return "." + name
	}
	return `['` + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name) + `']`
}

func singular(word string) string {
	if stem, ok := strings.CutSuffix(word, "ies"); ok {
		return stem + "y"
	} else if strings.HasSuffix(word, "ss") {
		return word
	}
	return strings.TrimSuffix(word, "s")
}
