package mcp

import (
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
)

// maxLabel is how long the name of one of several records may be in an
// intent; see intent.MaxMemberName.
const maxLabel = 200

// sameKey reports whether a record has a key. It is an error if the record has the key with
// another type, such as a number as text: that is undeclared, and our record must not be mistaken
// for a foreign one.
func sameKey(key, fields intent.Fields, names []string) (bool, error) {
	alike := true
	for _, name := range names {
		got, there := fields[name]
		if there && declared.Same(key[name], got) {
			continue
		}
		x, okX := declared.ScalarText(key[name])
		y, okY := declared.ScalarText(got)
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
