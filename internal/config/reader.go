package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/readback-go/readback/connectors"
)

// reader collects problems, so that one run shows all of them.
type reader struct {
	problems []Problem
}

func (r *reader) say(line int, field, format string, args ...any) {
	r.problems = append(r.problems, Problem{Line: line, Field: field, Problem: fmt.Sprintf(format, args...)})
}

// entry is one member of a mapping.
type entry struct {
	name  string
	line  int
	value ast.Node
}

func lineOf(n ast.Node) int {
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		return tk.Position.Line
	}
	return 0
}

// mapping lists the members of a mapping in their order.
func (r *reader) mapping(n ast.Node, field string) []entry {
	m, ok := n.(ast.MapNode)
	if !ok {
		r.say(lineOf(n), field, "is %s; want names with values below them", kindOf(n))
		return nil
	}
	var all []entry
	for it := m.MapRange(); it.Next(); {
		key := it.Key()
		if key.IsMergeKey() {
			r.say(lineOf(key), field, "merge keys (<<) are not taken; write the members out")
			continue
		}
		all = append(all, entry{name: key.GetToken().Value, line: lineOf(key), value: it.Value()})
	}
	return all
}

func kindOf(n ast.Node) string {
	switch n.Type() {
	case ast.NullType:
		return "empty"
	case ast.AnchorType, ast.AliasType:
		return "an anchor or alias (& or *), which is not taken"
	case ast.SequenceType:
		return "a list"
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	}
	return "a single value"
}

// text is a value that must be a string that is not empty.
func (r *reader) text(e entry, field string) string {
	var s string
	if _, ok := e.value.(ast.ScalarNode); !ok || e.value.Type() == ast.NullType {
		r.say(e.line, field, "is %s; want text", kindOf(e.value))
		return ""
	}
	if err := yaml.NodeToValue(e.value, &s, yaml.Strict()); err != nil {
		r.explain(field, err)
	} else if strings.TrimSpace(s) == "" {
		r.say(e.line, field, "is empty; want text")
	}
	return s
}

// secretWords are parts of names under which people write secrets.
var secretWords = []string{"password", "passwd", "secret", "token", "apikey", "api_key", "credential"}

// unknown refuses a member that nobody knows. What it holds is not repeated:
// it may be a secret under a name that we did not think of.
func (r *reader) unknown(e entry, field string, known []string) {
	place := strings.TrimPrefix(field+"."+clip(e.name), ".")
	if isSecret(e.name) {
		r.say(e.line, place, "a secret does not belong into this file; write password_env with the name of an environment variable, or password_file with the path of a file, and take it out here")
		return
	}
	r.say(e.line, place, "is not known; want one of %s", strings.Join(known, ", "))
}

func isSecret(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}

// decode fills a struct from a mapping and refuses members that it does not
// have.
func (r *reader) decode(n ast.Node, field string, into any) bool {
	before := len(r.problems)
	known := names(reflect.TypeOf(into).Elem())
	for _, e := range r.mapping(n, field) {
		if !slices.Contains(known, e.name) {
			r.unknown(e, field, known)
		} else if e.value.Type() == ast.NullType {
			r.say(e.line, field+"."+e.name, "is empty; want a value, or the line taken out")
		}
	}
	if len(r.problems) > before {
		return false
	}
	if err := yaml.NodeToValue(n, into, yaml.Strict()); err != nil {
		r.explain(field, err)
	}
	return len(r.problems) == before
}

// names lists the members of a struct as the file writes them.
func names(t reflect.Type) []string {
	var all []string
	for f := range t.Fields() {
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if option == "inline" {
			all = append(all, names(f.Type)...)
			continue
		}
		all = append(all, name)
	}
	return all
}

// explain turns an error of the YAML library into a problem, without the piece
// of the file that the library would show: there may be a secret in it.
func (r *reader) explain(field string, err error) {
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
		r.say(line, field, "has the wrong type; want %s", wanted(wrongType.DstType))
	case at != nil:
		r.say(line, field, "%s", at.GetMessage())
	default:
		r.say(line, field, "%s", err)
	}
}

// nameBefore is the member whose value has the wrong type, as far as the
// tokens tell: value, colon, name.
func nameBefore(e *yaml.TypeError) string {
	if e.Token == nil || e.Token.Prev == nil || e.Token.Prev.Prev == nil || e.Token.Prev.Value != ":" {
		return ""
	}
	return clip(e.Token.Prev.Prev.Value)
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

func clip(s string) string {
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}

var (
	_ yaml.NodeUnmarshaler = (*bound)(nil)
	_ yaml.NodeUnmarshaler = (*span)(nil)
)

// bound is a time that a destination promises: a duration, or "unknown".
type bound struct {
	set  bool
	time connectors.Bound
}

// UnmarshalYAML reads a bound.
func (b *bound) UnmarshalYAML(n ast.Node) error {
	if n.GetToken() != nil && n.GetToken().Value == "unknown" {
		*b = bound{set: true}
		return nil
	}
	d, err := duration(n, "60s, or unknown")
	*b = bound{set: true, time: connectors.Within(d)}
	return err
}

// span is a duration that is longer than nothing.
type span time.Duration

// UnmarshalYAML reads a span.
func (s *span) UnmarshalYAML(n ast.Node) error {
	d, err := duration(n, "10s")
	if err == nil && d == 0 {
		err = &yaml.SyntaxError{Message: "is 0; want a duration such as 10s", Token: n.GetToken()}
	}
	*s = span(d)
	return err
}

func duration(n ast.Node, such string) (time.Duration, error) {
	text := ""
	if tk := n.GetToken(); tk != nil {
		text = tk.Value
	}
	d, err := time.ParseDuration(text)
	if _, scalar := n.(ast.ScalarNode); !scalar || err != nil || d < 0 {
		return 0, &yaml.SyntaxError{Message: fmt.Sprintf("%q is no duration; want one such as %s", clip(text), such), Token: n.GetToken()}
	}
	return d, nil
}
