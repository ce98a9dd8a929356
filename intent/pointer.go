package intent

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Pointer is a JSON Pointer (RFC 6901). Its methods build one
// (AppendToken, which escapes), take it apart (Tokens, Parent, LastToken) and
// compare (Contains: the other is the same place or below it).
type Pointer = jsontext.Pointer

// Lookup finds the value at a JSON Pointer. A member with the value null is found, and its
// value is nil; a missing member is not found. The empty pointer finds f itself. An invalid
// pointer, an array index with leading zeros and "-" find nothing.
func Lookup(f Fields, pointer string) (value any, found bool) {
	p := Pointer(pointer)
	if !p.IsValid() {
		return nil, false
	}
	value = map[string]any(f)
	for token := range p.Tokens() {
		switch at := value.(type) {
		case map[string]any:
			if value, found = at[token]; !found {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(at) || strconv.Itoa(i) != token {
				return nil, false
			}
			value = at[i]
		default:
			return nil, false
		}
	}
	return value, true
}
