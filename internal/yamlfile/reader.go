package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

const (
	// maxNesting is how many brackets may be open at once, and how far a line
	// may be indented or begin with dashes, before a file is parsed at all: the
	// parser's memory grows with the square of it. It is far above maxDepth,
	// since brackets in texts count too.
	maxNesting = 1000
	// maxProblems bounds the collected problems: more are not read, and a hostile file must not
	// make a megabyte of them.
	maxProblems = 200
)

// Reader reads one file and collects what is wrong with it. The zero value
// works.
type Reader struct {
	// Problems is what is wrong, in the order in which it was found.
	Problems []Problem
	// Empty says what to do about a file that says nothing. Default "want a
	// file that says something".
	Empty string
	// Secrets says where a secret belongs, for a member that looks like one.
	// Default "take it out here".
	Secrets string
}

// Say adds a problem. Above a bound they are no longer collected.
func (r *Reader) Say(line int, field, format string, args ...any) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, Problem{Line: line, Field: field, Problem: fmt.Sprintf(format, args...)})
	}
}

// ReadBounded reads a file of at most so many bytes.
func ReadBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: has more than %d bytes", path, most)
	}
	return text, err
}

// Parse returns the one document of a file; false when there is none.
func (r *Reader) Parse(text []byte) (Node, bool) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors write one
	if line := garbled(text); line > 0 {
		r.Say(line, "", "is not UTF-8; want the file saved as UTF-8")
		return Node{}, false
	}
	if line := nested(text); line > 0 {
		r.Say(line, "", "is nested more than %d deep", maxNesting)
		return Node{}, false
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		r.explain("", err)
		return Node{}, false
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 1:
		return Node{bodies[0]}, true
	case 0:
		advice := r.Empty
		if advice == "" {
			advice = "want a file that says something"
		}
		r.Say(0, "", "is empty; %s", advice)
	default:
		r.Say(Node{bodies[1]}.Line(), "", "a second document begins here; want one")
	}
	return Node{}, false
}

// garbled is the line that is not UTF-8, 0 if none. The parser would put other
// characters in the place of what it cannot read.
func garbled(text []byte) int {
	line := 0
	for row := range bytes.Lines(text) {
		if line++; !utf8.Valid(row) {
			return line
		}
	}
	return 0
}

// nested is the line where a file is nested too deep to be parsed, 0 if none.
func nested(text []byte) int {
	open, line := 0, 0
	for row := range bytes.Lines(text) {
		line++
		indent := len(row) - len(bytes.TrimLeft(row, " -?\t"))
		for _, b := range row {
			switch b {
			case '[', '{':
				open++
			case ']', '}':
				open = max(open-1, 0)
			}
			if open > maxNesting || indent > maxNesting {
				return line
			}
		}
	}
	return 0
}

// Entry is one member of a mapping.
type Entry struct {
	Name  string
	Line  int
	Value Node
}

// Mapping lists the members of a mapping in their order.
func (r *Reader) Mapping(n Node, field string) []Entry {
	m, ok := n.n.(ast.MapNode)
	if !ok {
		r.Say(n.Line(), field, "is %s; want names with values below them", n.Kind())
		return nil
	}
	var all []Entry
	for it := m.MapRange(); it.Next(); {
		key := it.Key()
		if key.IsMergeKey() {
			r.Say(Node{key}.Line(), field, "merge keys (<<) are not taken; write the members out")
			continue
		}
		if (Node{key}).Kind() != single || key.Type() == ast.MappingKeyType {
			r.Say(Node{key}.Line(), field, "has a name that is written with ?, a tag, an anchor or an alias; want the plain name")
			continue
		}
		all = append(all, Entry{Name: key.GetToken().Value, Line: Node{key}.Line(), Value: Node{it.Value()}})
	}
	return all
}

// Text is a value that must be a string that is not empty.
func (r *Reader) Text(e Entry, field string) string {
	var s string
	if _, ok := e.Value.n.(ast.ScalarNode); !ok || e.Value.IsNull() {
		r.Say(e.Line, field, "is %s; want text", e.Value.Kind())
		return ""
	}
	if err := yaml.NodeToValue(e.Value.n, &s, yaml.Strict()); err != nil {
		r.explain(field, err)
	} else if strings.TrimSpace(s) == "" {
		r.Say(e.Line, field, "is empty; want text")
	}
	return s
}

// Unknown refuses an unknown member. Its value is not repeated: it may be a secret under a name
// that we did not think of.
func (r *Reader) Unknown(e Entry, field string, known []string) {
	place := strings.TrimPrefix(field+"."+Clip(e.Name), ".")
	if IsSecret(e.Name) {
		advice := r.Secrets
		if advice == "" {
			advice = "take it out here"
		}
		r.Say(e.Line, place, "a secret does not belong into this file; %s", advice)
		return
	}
	r.Say(e.Line, place, "is not known; want one of %s", strings.Join(known, ", "))
}

// names lists the members of a struct as the file writes them.
func names(t reflect.Type) []string {
	var all []string
	for f := range t.Fields() {
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if option == "inline" {
			all = append(all, names(f.Type)...)
		} else if name != "" {
			all = append(all, name)
		}
	}
	return all
}

// explain turns an error of the YAML library into a problem, without the piece
// of the file that the library would show: there may be a secret in it.
func (r *Reader) explain(field string, err error) {
	var wrongType *yaml.TypeError
	var at yaml.Error
	line := 0
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		line = at.GetToken().Position.Line
	}
	switch {
	case errors.As(err, &wrongType):
		if name := nameBefore(wrongType); name != "" {
			field += "." + name
		}
		r.Say(line, field, "has the wrong type; want %s", wanted(wrongType.DstType))
	case at != nil:
		r.Say(line, field, "%s", at.GetMessage())
	default:
		r.Say(line, field, "%s", err)
	}
}

// nameBefore is the member whose value has the wrong type, as far as the tokens show: value,
// colon, name.
func nameBefore(e *yaml.TypeError) string {
	if e.Token == nil || e.Token.Prev == nil || e.Token.Prev.Prev == nil || e.Token.Prev.Value != ":" {
		return ""
	}
	return Clip(e.Token.Prev.Prev.Value)
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.String:
		return "text"
	}
	return "another one"
}
