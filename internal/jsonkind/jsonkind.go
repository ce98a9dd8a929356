// Package jsonkind names the kinds of JSON values as people call them, and reads no
// more members of a text than are allowed.
package jsonkind

import "github.com/go-json-experiment/json/jsontext"

// Name is the kind with its article: "a string".
func Name(k jsontext.Kind) string {
	switch k {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "an array"
	}
	return "of another type"
}
