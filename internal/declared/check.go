package declared

import (
	"regexp"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/jsonplace"
	"github.com/readback-go/readback/internal/yamlfile"
)

// Load reads the one document of a file of at most so many bytes into f, and compiles it. The error
// wraps kind and lists everything that is wrong, with the lines.
func Load(r *yamlfile.Reader, text []byte, most int, file string, kind error, f any, compile func()) error {
	if len(text) > most {
		r.Say(0, "", "has more than %d bytes", most)
	} else if n, ok := r.Parse(text); ok {
		r.Fill(n, "", f)
		compile()
	}
	if len(r.Problems) == 0 {
		return nil
	}
	yamlfile.Sort(r.Problems)
	return &yamlfile.InvalidError{Kind: kind, File: file, Problems: r.Problems}
}

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Name checks the name of a file's destination.
func Name(r *yamlfile.Reader, t yamlfile.Text, in yamlfile.Place, want string) {
	if r.Required(t, in, "name", want) && !nameForm.MatchString(t.Value) {
		r.At(t.Place, "is %q; want lower-case letters, digits and dashes", yamlfile.Clip(t.Value))
	}
}

// Choice checks a member that takes one of some words, and may be left out.
func Choice(r *yamlfile.Reader, t yamlfile.Text, words ...string) {
	if t.Value != "" && !slices.Contains(words, t.Value) {
		r.At(t.Place, "is %q; want %s", yamlfile.Clip(t.Value), strings.Join(words, " or "))
	}
}

// ExactlyOne reports whether one of several members is there, and no other.
func ExactlyOne(there ...bool) bool {
	n := 0
	for _, is := range there {
		if is {
			n++
		}
	}
	return n == 1
}

// Regexp compiles a regular expression. It is nil where there is none.
func Regexp(r *yamlfile.Reader, t yamlfile.Text) *regexp.Regexp {
	if t.Value == "" {
		return nil
	}
	e, err := regexp.Compile(t.Value)
	if err != nil {
		r.At(t.Place, "is no regular expression: %s", yamlfile.Clip(err.Error()))
		return nil
	}
	return e
}

// Records takes the place of the one record of an answer, or of a list of them.
func Records(r *yamlfile.Reader, at yamlfile.Place, record, records yamlfile.Text) (*jsonplace.Place, *List) {
	if !ExactlyOne(record.Value != "", records.Value != "") {
		r.At(at, "want exactly one of record ($ for the whole answer) and records (a list such as $.items[*])")
		return nil, nil
	}
	return jsonplace.Singular(r, record), NewList(r, records)
}
