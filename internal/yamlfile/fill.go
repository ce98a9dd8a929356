package yamlfile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/goccy/go-yaml"
)

// maxDepth is how deep a file may nest. People write less than ten; the recursion is bounded to
// keep its stack small.
const maxDepth = 32

// Place is a position in a file. A struct that has a field named At of this type gets its own
// place from [Reader.Fill].
type Place struct {
	Line  int
	Field string
}

// Text is a string with its place. "" in a file is a problem.
type Text struct {
	Value string
	Place
}

// Values returns the values of texts, nil for none.
func Values(texts []Text) []string {
	var all []string
	for _, t := range texts {
		all = append(all, t.Value)
	}
	return all
}

// Filler is a type that reads itself.
type Filler interface {
	FillYAML(r *Reader, n Node, at Place)
}

// At adds a problem at a place.
func (r *Reader) At(p Place, format string, args ...any) { r.Say(p.Line, p.Field, format, args...) }

// Required reports whether a text is there. A missing one is a problem of the member in.
func (r *Reader) Required(t Text, in Place, name, want string) bool {
	if t.Line == 0 && t.Value == "" {
		r.Say(in.Line, strings.TrimPrefix(in.Field+"."+name, "."), "is missing; want %s", want)
	}
	return t.Value != ""
}

// Fill fills a value of any depth: structs by their yaml tags, maps by names,
// lists, strings, bools, whole numbers that are not negative, [Text], [Node],
// [Bound], [Span], [time.Duration], pointers to these, and every [Filler]. A list of [Text] may
// be written as a single value, and a struct as the value of its member with the
// option "short" (`yaml:"path,short"`, `yaml:",short"`). All members that are not known and all values
// of another type become problems; what is good is filled all the same. It
// reports whether there was nothing wrong.
func (r *Reader) Fill(n Node, field string, into any) bool {
	before := len(r.Problems)
	r.fill(n, Place{Line: n.Line(), Field: field}, reflect.ValueOf(into).Elem(), 0)
	return len(r.Problems) == before
}

func (r *Reader) fill(n Node, at Place, v reflect.Value, depth int) {
	if depth > maxDepth {
		r.At(at, "is nested more than %d deep", maxDepth)
		return
	}
	if n.IsNull() {
		r.At(at, "is empty; want a value, or the line taken out")
		return
	}
	if r.special(n, at, v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.fill(n, at, v.Elem(), depth+1)
	case reflect.Struct:
		r.fillStruct(n, at, v, depth)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, e := range r.Mapping(n, at.Field) {
			one := reflect.New(v.Type().Elem()).Elem()
			r.fill(e.Value, at.member(e), one, depth+1)
			v.SetMapIndex(reflect.ValueOf(e.Name), one)
		}
	case reflect.Slice:
		r.fillList(n, at, v, depth)
	default:
		r.fillScalar(n, at, v)
	}
}

func (p Place) member(e Entry) Place {
	return Place{Line: e.Line, Field: strings.TrimPrefix(p.Field+"."+Clip(e.Name), ".")}
}

// special fills the types that read themselves.
func (r *Reader) special(n Node, at Place, v reflect.Value) bool {
	switch into := v.Addr().Interface().(type) {
	case Filler:
		into.FillYAML(r, n, at)
	case *Node:
		*into = n
	case *Text:
		into.Place = at
		into.Value = r.Text(Entry{Line: at.Line, Value: n}, at.Field)
	case *time.Duration:
		if err := (*Span)(into).UnmarshalYAML(n.n); err != nil {
			r.explain(at.Field, err)
		}
	case yaml.NodeUnmarshaler: // Bound and Span
		if err := into.UnmarshalYAML(n.n); err != nil {
			r.explain(at.Field, err)
		}
	default:
		return false
	}
	return true
}

func (r *Reader) fillStruct(n Node, at Place, v reflect.Value, depth int) {
	if f := v.FieldByName("At"); f.IsValid() && f.Type() == reflect.TypeFor[Place]() {
		f.Set(reflect.ValueOf(at))
	}
	if short := shortForm(v); short.IsValid() && !n.IsMapping() {
		r.fill(n, at, short, depth+1)
		return
	}
	known := names(v.Type())
	for _, e := range r.Mapping(n, at.Field) {
		f := member(v, e.Name)
		if !f.IsValid() {
			r.unknownNear(e, at.Field, known)
			continue
		}
		r.fill(e.Value, at.member(e), f, depth+1)
	}
}

// shortForm is the member that stands for the whole struct where that is not written as a mapping:
// the one with the option "short".
func shortForm(v reflect.Value) reflect.Value {
	for i := range v.NumField() {
		if _, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); option == "short" {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// unknownNear is Unknown with the name that was probably meant.
func (r *Reader) unknownNear(e Entry, field string, known []string) {
	if near, ok := Nearest(e.Name, known); ok && !IsSecret(e.Name) {
		r.Say(e.Line, strings.TrimPrefix(field+"."+Clip(e.Name), "."), "is not known; did you mean %s?", near)
		return
	}
	r.Unknown(e, field, known)
}

func (r *Reader) fillList(n Node, at Place, v reflect.Value, depth int) {
	elements := []Node{n}
	if n.IsList() || v.Type().Elem() != reflect.TypeFor[Text]() {
		elements = r.List(n, at.Field)
	}
	for i, e := range elements {
		one := reflect.New(v.Type().Elem()).Elem()
		place := at
		if n.IsList() {
			place = Place{Line: e.Line(), Field: fmt.Sprintf("%s[%d]", at.Field, i)}
		}
		r.fill(e, place, one, depth+1)
		v.Set(reflect.Append(v, one))
	}
}

func (r *Reader) fillScalar(n Node, at Place, v reflect.Value) {
	got, ok := r.Scalar(n, at.Field)
	if !ok {
		return
	}
	switch b, isBool := got.(bool); {
	case v.Kind() == reflect.Bool && isBool:
		v.SetBool(b)
		return
	case v.Kind() == reflect.Int:
		if i, ok := wholeNumber(got); ok {
			v.SetInt(int64(i))
			return
		}
	case v.Kind() == reflect.String:
		v.SetString(r.Text(Entry{Line: at.Line, Value: n}, at.Field))
		return
	}
	r.At(at, "has the wrong type; want %s", wanted(v.Type()))
}

// member finds a field by its name in the file.
func member(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		tag, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		switch {
		case option == "inline":
			if f := member(v.Field(i), name); f.IsValid() {
				return f
			}
		case tag != "" && tag == name:
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// Nearest is the one of several names that was probably meant: at most two letters away, and
// nearer than half its length.
func Nearest(name string, known []string) (string, bool) {
	best, at := "", 3
	if len(name) > maxShown { // far from everything, and dear to compare
		return "", false
	}
	for _, k := range known {
		if d := levenshtein.ComputeDistance(name, k); d < at && d*2 < len(k) {
			best, at = k, d
		}
	}
	return best, best != ""
}

// Names lists the names of a map in order, for problems that say what would be
// right.
func Names[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
