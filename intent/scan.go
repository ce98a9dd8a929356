package intent

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/readback-go/readback/internal/jsonkind"
)

// scan checks the tokens before anything is built from them: the syntax, the depth, the number
// of values, and values that would silently mean a default (null, an empty string, a count of
// zero), where omitting the member is clear. It ends at the first value that exceeds a bound.
func scan(data []byte) error {
	s := scanner{dec: jsontext.NewDecoder(bytes.NewReader(data))}
	for first := true; ; first = false {
		token, err := s.dec.ReadToken()
		if err != nil {
			return explain(err)
		}
		if first && token.Kind() != jsontext.KindBeginObject {
			return invalidAt("", "is "+jsonkind.Name(token.Kind()), "an object")
		}
		if err := s.check(token); err != nil {
			return err
		}
		if s.dec.StackDepth() == 0 {
			break
		}
	}
	if _, err := s.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return invalidAt("", "is followed by more text", "one object and nothing after it")
	}
	return nil
}

type scanner struct {
	dec    *jsontext.Decoder
	top    string // the member of the intent that the scan is in
	fields bool   // whether it is one of the four sets of fields

	members, values, others int // seen so far: of the intent, inside its fields, elsewhere
}

func (s *scanner) check(token jsontext.Token) error {
	depth := s.dec.StackDepth()
	if depth > MaxDepth {
		return invalidAt(s.dec.StackPointer(), "is nested too deep", fmt.Sprintf("at most %d levels", MaxDepth))
	}
	if container, length := s.dec.StackIndex(depth); container == jsontext.KindBeginObject && length%2 == 1 {
		if depth == 1 {
			if s.members++; s.members > maxIntentMembers {
				return invalidAt("", fmt.Sprintf("has more than %d members", maxIntentMembers), "those of the contract alone")
			}
			s.top = token.String()
			s.fields = isPart(s.top)
		}
		return nil
	}
	if err := s.count(token.Kind(), depth); err != nil {
		return err
	}
	if depth >= 2 && s.fields {
		return nil
	}
	const want = "a value, or the member left out"
	switch {
	case token.Kind() == jsontext.KindNull:
		return invalidAt(s.dec.StackPointer(), "is null", want)
	case token.Kind() == jsontext.KindString && token.String() == "":
		return invalidAt(s.dec.StackPointer(), "is empty", want)
	case token.Kind() == jsontext.KindNumber && s.top == "count" && isZero(token.String()):
		return invalidAt(s.dec.StackPointer(), "is 0", "at least 1; a record that must be gone is a delete")
	}
	return nil
}

// count counts a value that is not a member of the intent itself.
func (s *scanner) count(kind jsontext.Kind, depth int) error {
	begins := kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray
	switch {
	case kind == jsontext.KindEndObject || kind == jsontext.KindEndArray || depth < 2 || begins && depth == 2:
		return nil
	case s.fields:
		if s.values++; s.values > MaxMembers {
			return invalidAt("", tooMany, wantMembers)
		}
	default:
		if s.others++; s.others > maxOthers {
			return invalidAt("/"+jsontext.Pointer(s.top), tooMany, fmt.Sprintf("at most %d beside key, expect, payload and require", maxOthers))
		}
	}
	return nil
}

// isPart: inside the four sets of fields null and empty are ordinary values.
func isPart(top string) bool {
	for _, part := range (WriteIntent{}).parts() {
		if part.name == top {
			return true
		}
	}
	return false
}

func isZero(number string) bool {
	d, ok := parseDecimal(stdjson.Number(number))
	return ok && d.digits == ""
}
