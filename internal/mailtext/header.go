package mailtext

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/emersion/go-message"
)

const (
	// maxHeaders is how many further headers a message may have.
	maxHeaders = 50
	// maxHeaderName is the longest name of one: it must leave room on a line of
	// 78 for the colon.
	maxHeaderName = 76
)

// Header is one header of a message.
type Header struct{ Name, Value string }

// Headers takes an object of further headers and returns them in the order of
// their names. Taken says why nobody may give the header of this name, which it
// gets in lower case; nil where anybody may.
func Headers(v any, taken func(lower string) *Problem) ([]Header, *Problem) {
	all, ok := v.(map[string]any)
	if !ok || len(all) > maxHeaders {
		return nil, &Problem{Is: "is not an object of headers", Want: fmt.Sprintf("at most %d names with their text", maxHeaders), Value: ok}
	}
	lines := make([]Header, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == "" || len(name) > maxHeaderName || strings.ContainsFunc(name, noHeaderName) {
			return nil, &Problem{Is: fmt.Sprintf("has the name %q", Clip(name)), Want: "header names", Value: true}
		}
		if p := taken(strings.ToLower(name)); p != nil {
			return nil, p.Below("/" + name)
		}
		value, isText := all[name].(string)
		if !isText || len(value) > MaxHeaderText || strings.ContainsFunc(value, notPrintable) {
			return nil, &Problem{At: "/" + name, Is: "cannot stand in a header", Want: fmt.Sprintf("one line of at most %d printable ASCII characters", MaxHeaderText), Value: isText}
		}
		lines = append(lines, Header{name, value})
	}
	return lines, nil
}

func noHeaderName(r rune) bool { return r <= ' ' || r > '~' || r == ':' }

func notPrintable(r rune) bool { return r < ' ' || r > '~' }

// Prepend puts lines above what the header has, in their order. They are
// written raw, because go-message folds long ones at blanks, and unfolding does
// not give every blank back.
func Prepend(h *message.Header, lines []Header) {
	for _, line := range slices.Backward(lines) { // each is added above the others
		h.AddRaw([]byte(line.Name + ": " + FoldWords(line.Value) + "\r\n"))
	}
}

// FoldWords breaks a line between two encoded words, where the blank between
// them is no part of the text.
func FoldWords(value string) string {
	return strings.ReplaceAll(value, "?= =?", "?=\r\n =?")
}
