package mcp

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/readback-go/readback/intent"
)

// maxLabel is how long the name of one of several records may be in an
// intent; see intent.MaxMemberName.
const maxLabel = 200

// scalarText is a scalar as text; false for any other value. Null is not a scalar.
func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, utf8.ValidString(v)
	case json.Number:
		return string(v), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// same reports whether two decoded JSON values are equal, numbers by value.
func same(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		return ok && sameNumber(x, y)
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for name, v := range x {
			if w, there := y[name]; !there || !same(v, w) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

func sameNumber(x, y json.Number) bool {
	if x == y {
		return true
	}
	if len(x) > maxLabel || len(y) > maxLabel { // an exponent makes a long number of a short text
		return false
	}
	a, okA := new(big.Float).SetPrec(800).SetString(string(x))
	b, okB := new(big.Float).SetPrec(800).SetString(string(y))
	return okA && okB && a.Cmp(b) == 0
}

// sameKey reports whether a record has a key. It is an error if the record has the key with
// another type, such as a number as text: that is undeclared, and our record must not be mistaken
// for a foreign one.
func sameKey(key, fields intent.Fields, names []string) (bool, error) {
	alike := true
	for _, name := range names {
		got, there := fields[name]
		if there && same(key[name], got) {
			continue
		}
		x, okX := scalarText(key[name])
		y, okY := scalarText(got)
		if !there || !okX || !okY || x != y {
			return false, nil
		}
		alike = false
	}
	if !alike {
		return false, answer("a record has the key as another type than was asked for")
	}
	return true, nil
}

// object is v as an object; false where it is none.
func object(v any) (map[string]any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return v, true
	case intent.Fields:
		return v, true
	}
	return nil, false
}
