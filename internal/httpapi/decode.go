package httpapi

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/jsonkind"
	"github.com/readback-go/readback/internal/visible"
)

const (
	// maxBody is the largest body of a request in bytes. A step's input and output are
	// kept side by side in one document of 1 MiB, with the decisions about it.
	maxBody = 400 << 10
	// maxDepth is how deep a body may nest: the caller must not control the depth of
	// later recursion. Real bodies stay below ten.
	maxDepth = 100
	// maxTokens bounds the names, values and ends of objects and arrays in a body: in
	// memory each is many times its text. An intent has at most half as many.
	maxTokens = 40_000
)

// body reads the body of a request.
func body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	data, err := ReadBody(w, r, maxBody)
	switch {
	case errors.Is(err, ErrTooLarge):
		return nil, &gate.Error{Code: gate.TooLarge, Message: err.Error()}
	case errors.Is(err, ErrSlow):
		return nil, &gate.Error{Code: requestTimeout, Message: err.Error()}
	case err != nil:
		return nil, &gate.Error{Code: gate.BadRequest, Message: ErrCut.Error(), Err: err}
	}
	return data, nil
}

// decode reads a body into a request. Unknown fields are ignored: the clients of the
// contract come in many versions. A known field of a wrong type, a repeated one, and text
// that is not UTF-8 are refused, since their meaning is ambiguous; null is the same as
// left out. Where no body is needed an empty one, or null, is an empty object.
func decode(data []byte, into any, needed bool) error {
	switch text := bytes.TrimSpace(data); {
	case !needed && (len(text) == 0 || string(text) == "null"):
		return nil
	case len(text) == 0:
		return badBody("it is empty; want a JSON object")
	}
	if err := scan(data); err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return explain(err)
	}
	for _, o := range objects(into) {
		switch kind := jsontext.Value(*o.raw).Kind(); {
		case kind == jsontext.KindNull:
			*o.raw = nil
		case kind != jsontext.KindBeginObject && len(*o.raw) > 0:
			return badField(o.field, "is "+jsonkind.Name(kind)+"; want an object")
		}
	}
	return checkTexts(into, "")
}

// scan refuses a body that is not one object, that nests too deep or has too many
// members, before anything is built from it.
func scan(data []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	if kind := dec.PeekKind(); kind != jsontext.KindBeginObject && kind != jsontext.KindInvalid {
		return badBody("it is " + jsonkind.Name(kind) + "; want a JSON object")
	}
	for tokens := 0; ; tokens++ {
		if _, err := dec.ReadToken(); err != nil {
			return explain(err)
		}
		if tokens == maxTokens {
			return badBody(fmt.Sprintf("it has more than %d names and values", maxTokens))
		}
		if dec.StackDepth() > maxDepth {
			return badField(fieldOf(dec.StackPointer()), fmt.Sprintf("is nested too deep; want at most %d levels", maxDepth))
		}
		if dec.StackDepth() == 0 {
			break
		}
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return badBody("more follows the JSON object")
	}
	return nil
}

// explain names the field that is wrong, without repeating its value.
func explain(err error) error {
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntactic):
		return badField(fieldOf(syntactic.JSONPointer), "is there twice; want each field once")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badBody("it ends too early; want a JSON object")
	case errors.As(err, &semantic) && semantic.JSONKind == jsontext.KindNumber && semantic.GoType == reflect.TypeFor[float64]():
		return badField(fieldOf(semantic.JSONPointer), "is a number out of all bounds; want one that a double holds")
	case errors.As(err, &semantic):
		return badField(fieldOf(semantic.JSONPointer), "is "+jsonkind.Name(semantic.JSONKind)+wantType(semantic.GoType))
	case errors.As(err, &syntactic):
		return badBody(fmt.Sprintf("it is not JSON in UTF-8 at byte %d", syntactic.ByteOffset))
	}
	return badBody("it is not a JSON object")
}

// fieldOf is a readable path: tool_context.tool_name.
func fieldOf(p jsontext.Pointer) string {
	var parts []string
	for part := range p.Tokens() {
		parts = append(parts, visible.Cut(part, 64))
		if len(parts) == 4 { // enough to find it
			break
		}
	}
	return strings.Join(parts, ".")
}

func wantType(t reflect.Type) string {
	if t == nil {
		return "; want another type"
	}
	switch t.Kind() {
	case reflect.String:
		return "; want a string"
	case reflect.Int, reflect.Int64:
		return "; want a whole number"
	case reflect.Float64:
		return "; want a number"
	case reflect.Struct:
		return "; want an object"
	}
	return "; want another type"
}

// object is a field of a request that holds an object of the caller's.
type object struct {
	field string
	raw   *stdjson.RawMessage
}

func objects(request any) []object {
	switch r := request.(type) {
	case *gate.CreateRequest:
		return []object{{"metadata", &r.Metadata}}
	case *gate.GateRequest:
		all := []object{{"step_input", &r.StepInput}, {"intent", &r.Intent}}
		if r.ToolContext != nil {
			all = append(all, object{"tool_context.tool_input", &r.ToolContext.ToolInput})
		}
		return all
	case *gate.CompleteRequest:
		return []object{{"output", &r.Output}}
	}
	return nil
}

// checkTexts refuses a NUL in the texts of a request: no ledger stores one.
func checkTexts(request any, within string) error {
	v := reflect.ValueOf(request).Elem()
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Tag.Get("json")
		if field.Kind() == reflect.String && strings.ContainsRune(field.String(), 0) {
			name, _, _ = strings.Cut(name, ",")
			return badField(within+name, "holds a NUL; want text without one")
		}
	}
	if r, ok := request.(*gate.GateRequest); ok && r.ToolContext != nil {
		return checkTexts(r.ToolContext, "tool_context.")
	}
	return nil
}

func badBody(what string) error {
	return &gate.Error{Code: gate.BadRequest, Message: "invalid request body: " + what}
}

func badField(field, what string) error {
	if field == "" {
		return badBody("it " + what)
	}
	return &gate.Error{Code: gate.BadRequest, Field: field, Message: field + " " + what}
}
