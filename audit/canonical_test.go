package audit

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/ledger"
)

// For any event, page or head, the one-pass canonical form equals the library's to the byte, and
// nothing is omitted.
func TestCanonicalInOneGo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	type event struct {
		Event    ledger.Event `json:"event"`
		Evidence string       `json:"evidence,omitempty"`
		Tenant   string       `json:"tenant"`
	}
	quick := 0
	for range 3000 {
		var e event
		var p Page
		fill(r, reflect.ValueOf(&e).Elem())
		fill(r, reflect.ValueOf(&p).Elem())
		e.Event.Evidence, e.Event.Mismatches = nil, nil
		for _, what := range []any{e, p, p.head(), Page{}, Entry{}, ledger.Event{}} {
			got, err := canonical(nil, what)
			want, slowErr := slowly(what)
			if err != nil || slowErr != nil {
				t.Fatal(err, slowErr)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Fatal(diff)
			}
			if _, err := appendStruct(nil, reflect.ValueOf(what)); err == nil {
				quick++
			}
		}
	}
	if quick < 3000 {
		t.Errorf("%d of 18000 were made in one go; this must try that", quick)
	}
}

// Everything in usual evidence is made canonical in one pass: the library costs a multiple.
func TestNothingUsualIsSlow(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123000000, time.UTC)
	e := ledger.Event{Seq: 3, At: at, Fence: 1, Kind: ledger.EvSent, Ago: time.Second, Prepared: []byte("a body"), Reason: "ä <b> \u2028"}
	for _, what := range []any{e, Page{Format: 1, Sealed: at, Entries: []Entry{{Write: "w", Seq: 1, At: at}}}} {
		if _, err := appendStruct(nil, reflect.ValueOf(what)); err != nil {
			t.Errorf("%T: %v", what, err)
		}
	}
	if _, err := appendStruct(nil, reflect.ValueOf(ledger.Event{Evidence: json.RawMessage(`{}`)})); err == nil {
		t.Error("raw JSON was made canonical unread")
	}
}

var texts = []string{"", "", "a", "ä", "<&>", "\u2028\u2029", "\x00\x1f\x7f", "\"\\/", "\b\f\n\r\t", "\xff", "\ufffd", "😀"}

// fill puts a random value into a value, or nothing.
func fill(r *rand.Rand, v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		if r.IntN(2) == 0 {
			v.Set(reflect.ValueOf(time.Unix(r.Int64N(1<<33), r.Int64N(2)*r.Int64N(1e9)).UTC()))
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts[r.IntN(len(texts))] + texts[r.IntN(len(texts)-3)])
		if r.IntN(40) > 0 {
			v.SetString(texts[r.IntN(9)])
		}
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{0, 0, 1, -1, 1e6, 1<<53 - 1, -1<<53 + 1, 1e15}[r.IntN(8)])
		if r.IntN(200) == 0 {
			v.SetInt([]int64{1 << 53, 1<<53 + 1, 1<<63 - 1, -1 << 63}[r.IntN(4)])
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(256)))
	default:
		panic(v.Type())
	}
}
