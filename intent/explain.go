package intent

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/readback-go/readback/internal/jsonkind"
)

// explain turns an error of the JSON library into problem and remedy.
func explain(err error) error {
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntactic):
		return invalidAt(syntactic.JSONPointer, "is there twice", "each member once")
	case errors.As(err, &syntactic):
		return invalidAt(syntactic.JSONPointer, fmt.Sprintf("is not valid JSON at byte %d: %v", syntactic.ByteOffset, syntactic.Err), "JSON (RFC 8259) in UTF-8")
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &semantic):
		return invalidAt(semantic.JSONPointer, "is not a known member", "one of "+knownMembers(semantic.JSONPointer))
	case errors.As(err, &semantic):
		return invalidAt(semantic.JSONPointer, wrongType(semantic), wantType(semantic.GoType))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return invalidAt("", "ends too early", "one complete JSON object")
	}
	return invalidAt("", fmt.Sprintf("cannot be decoded: %v", err), "one JSON object")
}

func wrongType(e *json.SemanticError) string {
	if len(e.JSONValue) > 0 {
		return "is " + clip(e.JSONValue.String())
	}
	return "is " + jsonkind.Name(e.JSONKind)
}

func wantType(t reflect.Type) string {
	if t == nil {
		return "another type"
	}
	if t.PkgPath() == "time" && t.Name() == "Time" {
		return `a time in RFC 3339, later than the year 1 ("2026-01-31T18:00:00Z")`
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int:
		return "a whole number"
	case reflect.Slice:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "another type"
}

// knownMembers lists the members allowed in place of an unknown one.
func knownMembers(at Pointer) string {
	t := reflect.TypeFor[WriteIntent]()
	if at.Parent() != "" {
		t = reflect.TypeFor[Rule]()
	}
	var names []string
	for field := range t.Fields() {
		if name := jsonName(field); name != "compensates" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// jsonName returns the member name of a struct field.
func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}
