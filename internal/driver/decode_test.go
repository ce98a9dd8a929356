package driver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

// Records and events decode as with encoding/json, although another library is used: chains are
// made of the result, and it is written again.
func TestDecodesAsBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		for _, of := range []reflect.Type{reflect.TypeFor[ledger.Record](), reflect.TypeFor[ledger.Event]()} {
			v := reflect.New(of)
			fill(t, r, v.Elem())
			body, err := json.Marshal(v.Interface())
			if err != nil {
				t.Fatal(err)
			}
			want, got := reflect.New(of), reflect.New(of)
			d := json.NewDecoder(bytes.NewReader(body))
			d.DisallowUnknownFields()
			if err := errors.Join(d.Decode(want.Interface()), driver.Decode(body, got.Interface())); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Interface(), got.Interface()); diff != "" {
				t.Fatalf("%s\n(-encoding/json +driver):\n%s", body, diff)
			}
		}
	}
}

// Records and events are written as encoding/json writes them, although another library is used.
// Only what replaces invalid UTF-8, which mended events do not have, is not escaped.
func TestEncodesAsBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	same := func(got []byte, err error, v any) {
		t.Helper()
		want, other := json.Marshal(v)
		if err := errors.Join(err, other); err != nil || string(got) != strings.ReplaceAll(string(want), `\ufffd`, "\ufffd") {
			t.Fatalf("%s, %v; encoding/json: %s", got, err, want)
		}
	}
	for range 500 {
		var rec ledger.Record
		fill(t, r, reflect.ValueOf(&rec).Elem())
		body, err := driver.Encode(nil, rec)
		rec.Intent = nil
		for _, raw := range driver.Raws(&rec) {
			*raw = nil
		}
		same(body, err, rec)
		var e ledger.Event
		fill(t, r, reflect.ValueOf(&e).Elem())
		body, err = driver.EncodeEvent(nil, e)
		e.Evidence, e.Mismatches = nil, nil
		same(body, err, e)
	}
}

// fill puts a random value, or none, into v.
func fill(t *testing.T, r *rand.Rand, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(1<<33), r.Int64N(2)*r.Int64N(1e9)).UTC()))
		return
	case json.RawMessage:
		v.SetBytes([]byte([]string{`{"a":1.0}`, `null`, `"x"`, `[]`}[r.IntN(4)]))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"", "a", "ä <&>", "\u2028\x00", "\xff", "😀\"\\"}[r.IntN(6)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 1e15, 1<<63 - 1}[r.IntN(5)])
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(256)))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, r, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			fill(t, r, v.Index(i))
		}
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, r, v.Elem())
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range r.IntN(3) {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(t, r, value)
			v.SetMapIndex(reflect.ValueOf(fmt.Sprint("k", i)).Convert(v.Type().Key()), value)
		}
	default:
		t.Fatalf("%s is not tried", v.Type())
	}
}
