package declared

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxNumber is how long a number, and how large its exponent, may be to be compared by value. JSON
// numbers of real systems fit an IEEE double; one with an exponent of millions takes gigabytes to
// write out.
const maxNumber = 400

// ScalarText is a scalar as text; false for any other value. Null is not a scalar: it would read
// like a word.
func ScalarText(v any) (string, bool) {
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

// Same reports whether two decoded JSON values are equal: of the same type, numbers by value.
func Same(a, b any) bool {
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
			if w, there := y[name]; !there || !Same(v, w) {
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
			if !Same(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, okX := Rational(a)
	y, okY := Rational(b)
	return okX && okY && x.Cmp(y) == 0
}

// Rational is the value of a number; false for one of implausible length, which is compared as text.
func Rational(n json.Number) (*big.Rat, bool) {
	if len(n) > maxNumber {
		return nil, false
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(string(n)), "e"); ok {
		if e, err := strconv.Atoi(exponent); err != nil || e > maxNumber || e < -maxNumber {
			return nil, false
		}
	}
	return new(big.Rat).SetString(string(n))
}
