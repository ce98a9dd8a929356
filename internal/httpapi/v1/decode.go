package v1

import (
	"bytes"
	"cmp"
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
	// maxMembers bounds the members of a plan: it has fewer.
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

// decodeIntent reads an intent. Its tenant may be left out, and its workflow and
// step where the key names the write. The engine validates it.
func decodeIntent(body []byte, tenant, key string) (intent.WriteIntent, error) {
	w, err := intent.Parse(body)
	if err != nil {
		return w, err
	}
	w.Tenant = cmp.Or(w.Tenant, tenant)
	return w, named(&w, key)
}

// decodeItem reads an item of a batch. Its idempotency_key is what the header is to a write of its
// own.
func decodeItem(text []byte, tenant string) (w intent.WriteIntent, key string, err error) {
	if w, err = intent.Parse(text); err != nil {
		return w, "", err
	}
	w.Tenant, key = cmp.Or(w.Tenant, tenant), w.IdempotencyKey
	if key == "" || w.Workflow != "" || w.Step != "" {
		return w, key, nil
	}
	if !isName(key) {
		return w, "", badField("/idempotency_key", "is no name; want 1 to 255 printable ASCII characters, without blanks at the ends")
	}
	w.IdempotencyKey = "" // the intent is the one that the header makes
	return w, key, named(&w, key)
}

// decodePlan reads the plan of a saga. Its tenant may be left out.
func decodePlan(body []byte, tenant string) (saga.Plan, error) {
	if len(body) > saga.MaxPlan {
		return saga.Decode(body) // which reports the error
	}
	members := jsonkind.Members(body, maxMembers)
	if members == nil || members["tenant"] != nil {
		return saga.Decode(body)
	}
	name, err := json.Marshal(tenant)
	if err != nil {
		return saga.Plan{}, err
	}
	members["tenant"] = name
	whole, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return saga.Plan{}, err
	}
	return saga.Decode(whole)
}
