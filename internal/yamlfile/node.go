package yamlfile

import (
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Node is one value of a file, as written. The zero value is none.
type Node struct{ n ast.Node }

// There reports whether there is a value at all.
func (n Node) There() bool { return n.n != nil }

// Line is its line, 0 if that is unknown.
func (n Node) Line() int {
	if n.n == nil {
		return 0
	}
	if tk := n.n.GetToken(); tk != nil && tk.Position != nil {
		return tk.Position.Line
	}
	return 0
}

// IsNull reports whether it is empty.
func (n Node) IsNull() bool { return n.n == nil || n.n.Type() == ast.NullType }

// IsMapping reports whether it is names with values below them.
func (n Node) IsMapping() bool {
	_, ok := n.n.(ast.MapNode)
	return ok
}

// IsList reports whether it is a list.
func (n Node) IsList() bool { return n.n != nil && n.n.Type() == ast.SequenceType }

const single = "a single value"

// Kind is what it is, in words.
func (n Node) Kind() string {
	if n.n == nil {
		return "empty"
	}
	switch n.n.Type() {
	case ast.NullType:
		return "empty"
	case ast.AnchorType, ast.AliasType:
		return "an anchor or alias (& or *), which is not taken"
	case ast.TagType:
		return "a tag (!), which is not taken"
	case ast.SequenceType:
		return "a list"
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	}
	return single
}

// List is the elements of a list.
func (r *Reader) List(n Node, field string) []Node {
	s, ok := n.n.(*ast.SequenceNode)
	if !ok {
		r.Say(n.Line(), field, "is %s; want a list", n.Kind())
		return nil
	}
	all := make([]Node, 0, len(s.Values))
	for _, v := range s.Values {
		all = append(all, Node{v})
	}
	return all
}

// jsonNumber is a number as JSON writes it.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// Scalar is a single value as JSON has it: nil, a bool, a string, or a
// [json.Number] with the digits that stand in the file. It reports a problem
// and false for anything else, numbers that JSON does not have among them.
func (r *Reader) Scalar(n Node, field string) (any, bool) {
	switch v := n.n.(type) {
	case *ast.NullNode:
		return nil, true
	case *ast.BoolNode:
		return v.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		if text := n.n.GetToken().Value; jsonNumber.MatchString(text) {
			return json.Number(text), true
		}
		r.Say(n.Line(), field, "is no number that JSON has; put it in quotes if it is text")
		return nil, false
	case *ast.StringNode, *ast.LiteralNode:
		var s string
		if err := yaml.NodeToValue(n.n, &s); err != nil {
			r.explain(field, err)
			return nil, false
		}
		return s, true
	}
	r.Say(n.Line(), field, "is %s; want a single value", n.Kind())
	return nil, false
}

// wholeNumber is the value of an int, which is not negative.
func wholeNumber(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(string(n))
	return i, err == nil && i >= 0
}
