package jsonkind

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Members are those of an object, nil where it cannot be read or has more than most
// of them: reading ends there, and nothing of it is kept.
func Members(text []byte, most int) map[string]jsontext.Value {
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	if first, err := dec.ReadToken(); err != nil || first.Kind() != jsontext.KindBeginObject {
		return nil
	}
	all := map[string]jsontext.Value{}
	for dec.PeekKind() != jsontext.KindEndObject {
		name, err := dec.ReadToken()
		if err != nil || len(all) == most {
			return nil
		}
		key := name.String()
		v, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		all[key] = v.Clone()
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil
	}
	return all
}

// TooMany reports whether a text has more than most names, values and ends of objects
// and arrays. It reads no further than that.
func TooMany(text []byte, most int) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	for n := 0; n <= most; n++ {
		if _, err := dec.ReadToken(); err != nil {
			return false // at the end, or what is wrong is found by what reads it
		}
	}
	return true
}
