package v1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/jsonkind"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/saga"
)

const (
	// maxDepth is how deep a body may nest that is no intent: they have one level.
	maxDepth = 32
	// maxMembers bounds the members of an intent or a plan: both have fewer.
	maxMembers = 64
	// maxShown bounds how much of a caller's text a response repeats, in bytes.
	maxShown = 64
)

// decode reads a body into a request of this API, strictly: it refuses unknown and
// repeated members, other types, null, text that is not UTF-8, NUL, and anything after
// the object.
func decode(data []byte, into any) error {
	if err := scan(data); err != nil {
		return err
	}
	if err := json.Unmarshal(data, into, json.RejectUnknownMembers(true)); err != nil {
		return explain(err)
	}
	return nil
}

// scan checks the tokens before anything is built from them.
func scan(data []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for first := true; ; first = false {
		token, err := dec.ReadToken()
		if err != nil {
			return explain(err)
		}
		at := string(dec.StackPointer())
		switch kind := token.Kind(); {
		case first && kind != jsontext.KindBeginObject:
			return badField("", "is "+jsonkind.Name(kind)+"; want a JSON object")
		case dec.StackDepth() > maxDepth:
			return badField(clip(at), fmt.Sprintf("is nested too deep; want at most %d levels", maxDepth))
		case kind == jsontext.KindNull:
			return badField(clip(at), "is null; want a value, or the member left out")
		case kind == jsontext.KindString && bytes.ContainsRune([]byte(token.String()), 0):
			return badField(clip(at), "holds a NUL; want text without one")
		}
		if dec.StackDepth() == 0 {
			break
		}
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return badField("", "is followed by more text; want one object and nothing after it")
	}
	return nil
}

// explain names the member that is wrong, without repeating its value.
func explain(err error) error {
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntactic):
		return badField(clip(string(syntactic.JSONPointer)), "is there twice; want each member once")
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &semantic):
		return badField(clip(string(semantic.JSONPointer)), "is not known; want only members that the document lists")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return badField("", "ends too early; want a JSON object")
	case errors.As(err, &semantic):
		return badField(clip(string(semantic.JSONPointer)), "is "+jsonkind.Name(semantic.JSONKind)+"; want "+typeName(semantic.GoType))
	case errors.As(err, &syntactic):
		return badField("", fmt.Sprintf("is not JSON in UTF-8 at byte %d", syntactic.ByteOffset))
	}
	return badField("", "is not a JSON object")
}

// clip keeps a caller's member name from filling a response.
func clip(s string) string { return visible.Cut(s, 2*maxShown) }

func typeName(t reflect.Type) string {
	if t != nil {
		switch t.Kind() {
		case reflect.String:
			return "a string"
		case reflect.Bool:
			return "true or false"
		case reflect.Int64:
			return "a whole number"
		}
	}
	return "another type"
}

// members are the members of a body, unchanged.
type members map[string]jsontext.Value

func (m members) has(name string) bool { return m[name] != nil }

// text is a member that is a string.
func (m members) text(name string) (string, bool) {
	if m[name].Kind() != jsontext.KindString {
		return "", false
	}
	var s string
	err := json.Unmarshal(m[name], &s)
	return s, err == nil
}

func (m members) put(name, text string) error {
	v, err := json.Marshal(text)
	m[name] = v
	return err
}

// filled is a body with missing members filled in. An unreadable body is returned
// unchanged: intent.Decode or saga.Decode reports its error.
func filled(body []byte, fill func(members) error) ([]byte, error) {
	m := members(jsonkind.Members(body, maxMembers))
	if m == nil {
		return body, nil
	}
	if err := fill(m); err != nil {
		return nil, err
	}
	return json.Marshal(m, json.Deterministic(true))
}

// decodeIntent reads an intent. Its tenant may be left out, and its workflow and
// step where the key names the write.
func decodeIntent(body []byte, tenant, key string) (intent.WriteIntent, error) {
	return decodeNamed(body, tenant, func(m members) error { return named(m, key) })
}

// decodeNamed reads an intent to which name adds what names it.
func decodeNamed(body []byte, tenant string, name func(members) error) (intent.WriteIntent, error) {
	if len(body) > intent.MaxSize {
		return intent.Decode(body) // which reports the error
	}
	whole, err := filled(body, func(m members) error {
		if !m.has("tenant") {
			if err := m.put("tenant", tenant); err != nil {
				return err
			}
		}
		return name(m)
	})
	if err != nil {
		return intent.WriteIntent{}, err
	}
	return intent.Decode(whole)
}

// decodePlan reads the plan of a saga. Its tenant may be left out.
func decodePlan(body []byte, tenant string) (saga.Plan, error) {
	if len(body) > saga.MaxPlan {
		return saga.Decode(body) // which reports the error
	}
	whole, err := filled(body, func(m members) error {
		if m.has("tenant") {
			return nil
		}
		return m.put("tenant", tenant)
	})
	if err != nil {
		return saga.Plan{}, err
	}
	return saga.Decode(whole)
}
