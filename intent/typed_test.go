package intent

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type audit struct {
	UpdatedAt time.Time `json:"updated_at" readback:"ignore"`
	Source    string    `json:"source,omitempty"`
	hidden    string
}

type address struct {
	City string `json:"city"`
	Geo  *struct {
		Lat float64 `json:"lat"`
	} `json:"geo" readback:"ignore"`
	Draft string `json:"draft" readback:"-"`
}

type order struct {
	audit
	Number   string            `json:"number" readback:"key"`
	Line     int64             `json:"line" readback:"key"`
	Amount   float64           `json:"amount" readback:"expect"`
	Note     *string           `json:"note"`
	Address  address           `json:"address"`
	Shipping *address          `json:"shipping,omitempty"`
	Due      time.Time         `json:"due,omitzero"`
	Tags     []string          `json:"tags"`
	Labels   map[string]string `json:"labels,omitempty"`
	Discount int               `json:"discount,omitempty"`
	Status   string            `json:"status,omitempty" readback:"require"`
	Notify   bool              `json:"notify,omitempty" readback:"payload"`
	ETag     string            `json:"etag" readback:"ignore"`
	Local    string            `json:"local" readback:"-"`
	Secret   string            `json:"-"`
	Plain    json.Number
}

func TestFrom(t *testing.T) {
	base := WriteIntent{
		Tenant: "acme", Workflow: "w", Tool: "t", Destination: "d", Kind: "order", Write: Upsert, Ignore: []string{"/etag"},
		Expect: Fields{"currency": "EUR", "rate": 2},
	}
	spare := append(make([]string, 0, 9), base.Ignore...) // a slice that From could write behind
	base.Ignore = spare
	n := func(s string) any { return json.Number(s) }
	record := order{
		Number: "A-17", Line: 3, Amount: 12.5, Address: address{City: "Köln", Draft: "x"}, Shipping: &address{City: "Bonn"},
		Due: time.Date(2030, 1, 31, 18, 0, 0, 0, time.UTC), Status: "open", Notify: true, ETag: "e", Local: "l", Secret: "s", Plain: "7",
		audit: audit{Source: "import", hidden: "h"},
	}
	want := base
	want.Key = Fields{"number": "A-17", "line": n("3")}
	want.Expect = Fields{
		"currency": "EUR", "rate": n("2"), "amount": n("12.5"), "note": nil, "address": map[string]any{"city": "Köln"}, "shipping": map[string]any{"city": "Bonn"},
		"due": "2030-01-31T18:00:00Z", "tags": []any{}, "source": "import", "Plain": n("7"),
	}
	want.Payload = Fields{"notify": true}
	want.Require = Fields{"status": "open"}
	want.Ignore = []string{"/etag", "/address/geo", "/shipping/geo", "/updated_at"}

	for name, from := range map[string]func() (WriteIntent, error){
		"value":              func() (WriteIntent, error) { return From(base, record) },
		"pointer":            func() (WriteIntent, error) { return From(base, &record) },
		"interface":          func() (WriteIntent, error) { return From[any](base, record) },
		"pointer to pointer": func() (WriteIntent, error) { p := &record; return From(base, &p) },
	} {
		got, err := from()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		checkStable(t, got)
	}
	if diff := cmp.Diff(Fields{"currency": "EUR", "rate": 2}, base.Expect); diff != "" || spare[:2][1] != "" {
		t.Errorf("the base changed: %s %v", diff, base.Ignore)
	}
}

// Zero values are values; members that the json tag omits are not there.
func TestFromLeavesOutWhatJSONLeavesOut(t *testing.T) {
	got, err := From(WriteIntent{}, order{Number: "A", Plain: "0"})
	if err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string]bool{
		"amount": true, "note": true, "tags": true, "address": true,
		"shipping": false, "due": false, "labels": false, "discount": false, "source": false, "etag": false, "local": false, "Secret": false, "updated_at": false,
	} {
		if _, ok := got.Expect[name]; ok != there {
			t.Errorf("%s expected: %v; want %v", name, ok, there)
		}
	}
	if got.Payload != nil || got.Require != nil {
		t.Errorf("payload %v, require %v; want none", got.Payload, got.Require)
	}
}

// A field that a tag marks as sensitive is listed by its path, whatever its role is.
func TestFromListsWhatIsSensitive(t *testing.T) {
	type card struct {
		Number string `json:"number" readback:"sensitive"`
		Brand  string `json:"brand"`
		Seen   string `json:"seen" readback:"ignore,sensitive"`
	}
	type person struct {
		Tax   string `json:"tax" readback:"key,sensitive"`
		Card  card   `json:"card"`
		PIN   string `json:"pin" readback:"payload,sensitive"`
		Name  string `json:"name"`
		Again string `json:"again" readback:"expect,sensitive"`
	}
	base := WriteIntent{Sensitive: []string{"/again"}}
	got, err := From(base, person{Tax: "t", Card: card{Number: "n", Brand: "b"}, PIN: "p", Name: "x", Again: "a"})
	if err != nil {
		t.Fatal(err)
	}
	want := WriteIntent{
		Key: Fields{"tax": "t"}, Expect: Fields{"card": map[string]any{"number": "n", "brand": "b"}, "name": "x", "again": "a"}, Payload: Fields{"pin": "p"},
		Ignore: []string{"/card/seen"}, Sensitive: []string{"/again", "/card/number", "/card/seen", "/pin", "/tax"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, record := range map[string]any{
		"not sent": struct {
			A string `readback:"-,sensitive"`
		}{},
		"no role": struct {
			A string `readback:",sensitive"`
		}{},
		"the other way round": struct {
			A string `readback:"sensitive,key"`
		}{},
	} {
		if _, err := From(WriteIntent{}, record); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v; want that the tag is refused", name, err)
		}
	}
}

type node struct {
	ID   string `json:"id" readback:"key"`
	Next *node  `json:"next,omitempty"`
}

type tree struct {
	ID   string  `json:"id"`
	Next []*tree `json:"next,omitempty"`
}

type lines struct {
	Lines []struct {
		SKU string `json:"sku" readback:"ignore"`
	} `json:"lines"`
}

type own struct{ fail bool }

func (o own) MarshalJSON() ([]byte, error) {
	if o.fail {
		return nil, errors.New("no such thing")
	}
	return []byte(`{"a":1.50,"b":{"c":null}}`), nil
}

func TestFromRefuses(t *testing.T) {
	for name, tc := range refusedByFrom {
		t.Run(name, func(t *testing.T) {
			_, err := tc.from()
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %s: %s", err, tc.want, tc.reason)
			}
		})
	}
}

var refusedByFrom = map[string]struct {
	reason string
	from   func() (WriteIntent, error)
	want   string
}{
	"no struct":   {"there are no names", func() (WriteIntent, error) { return From(WriteIntent{}, 5) }, "the intent is made from a Go int; want a struct, or a pointer to one that is not nil"},
	"nil pointer": {"there is nothing", func() (WriteIntent, error) { return From(WriteIntent{}, (*order)(nil)) }, "the intent is made from a Go *intent.order; want a struct"},
	"nil":         {"there is nothing", func() (WriteIntent, error) { return From[any](WriteIntent{}, nil) }, "the intent is made from a Go <nil>"},
	"a map":       {"fields need no From", func() (WriteIntent, error) { return From(WriteIntent{}, map[string]any{}) }, "made from a Go map[string]interface {}"},
	"unknown role": {"a typing error must not become expect", func() (WriteIntent, error) {
		return From(WriteIntent{}, struct {
			A int `readback:"keys"`
		}{})
	}, `/A has the tag readback:"keys"; want readback:"key", "expect", "payload", "require", "ignore", "sensitive" or "-", all but`},
	"two roles": {"the same", func() (WriteIntent, error) {
		return From(WriteIntent{}, struct {
			A int `readback:"key,expect"`
		}{})
	}, `/A has the tag readback:"key,expect"`},
	"nested key": {"a key has no depth", func() (WriteIntent, error) {
		return From(WriteIntent{}, struct {
			A struct {
				B int `readback:"key"`
			} `json:"a"`
		}{})
	}, `/a/B has the tag readback:"key" in a nested struct`},
	"tag in array": {"no path names it", func() (WriteIntent, error) { return From(WriteIntent{}, lines{}) }, "/lines has readback tags inside an array or a map"},
	"tag on unexported": {"it would do nothing", func() (WriteIntent, error) {
		return From(WriteIntent{}, struct {
			a int `readback:"key"`
		}{1})
	}, "/a has a readback tag, and JSON does not show the field"},
	"tag on json -": {"it would do nothing", func() (WriteIntent, error) {
		return From(WriteIntent{}, struct {
			A int `json:"-" readback:"key"`
		}{})
	}, "/A has a readback tag, and JSON does not show the field"},
	"tag on embedded": {"it would do nothing", func() (WriteIntent, error) {
		return From(WriteIntent{}, struct {
			address `readback:"key"`
		}{})
	}, "/address has the readback tag on an embedded struct"},
	"holds itself": {"no path ends", func() (WriteIntent, error) { return From(WriteIntent{}, node{}) }, "/next is of a type that holds itself and has readback tags"},
	"NaN":          {"JSON has none", func() (WriteIntent, error) { return From(WriteIntent{}, order{Amount: math.NaN()}) }, "/expect/amount cannot be written as JSON"},
	"duration": {"the unit is unknown", func() (WriteIntent, error) {
		return From(WriteIntent{}, struct {
			D time.Duration `json:"d" readback:"payload"`
		}{})
	}, "/payload/d cannot be written as JSON"},
	"empty number": {"the zero json.Number is none", func() (WriteIntent, error) { return From(WriteIntent{}, order{}) }, `/expect/Plain cannot be written as JSON (Go intent.order): "" is no JSON number`},
	"a function": {"JSON has none", func() (WriteIntent, error) {
		return From(WriteIntent{}, struct {
			F func() `json:"f"`
		}{})
	}, "/expect/f cannot be written as JSON"},
	"invalid UTF-8":  {"it would be replaced", func() (WriteIntent, error) { return From(WriteIntent{}, node2{ID: "\xff"}) }, "/key/id cannot be written as JSON"},
	"own JSON fails": {"its error is shown", func() (WriteIntent, error) { return From(WriteIntent{}, struct{ O own }{own{fail: true}}) }, "no such thing"},
	"twice":          {"which one is meant?", func() (WriteIntent, error) { return From(WriteIntent{Key: Fields{"id": "x"}}, node2{ID: "y"}) }, "/key/id is in the base intent too; want it in one of them"},
	"base value": {"the base is normalised too", func() (WriteIntent, error) {
		return From(WriteIntent{Payload: Fields{"c": make(chan int)}}, node2{})
	}, "/payload/c cannot be written as JSON"},
}

type node2 struct {
	ID string `json:"id" readback:"key"`
}

// A type with its own JSON encoding is one value, whatever its fields are.
func TestFromTakesTypesAsTheyWriteThemselves(t *testing.T) {
	got, err := From(WriteIntent{}, struct {
		Own  own             `json:"own"`
		Ptr  *own            `json:"ptr"`
		Raw  json.RawMessage `json:"raw"`
		Text time.Time       `json:"text" readback:"payload"`
		Tree tree            `json:"tree"`
		Any  any             `json:"any"`
	}{Raw: json.RawMessage(`[1]`), Tree: tree{ID: "a", Next: []*tree{{ID: "b"}}}, Any: map[string]int{"x": 1}})
	if err != nil {
		t.Fatal(err)
	}
	n := func(s string) any { return json.Number(s) }
	want := WriteIntent{
		Expect: Fields{
			"own": map[string]any{"a": n("1.50"), "b": map[string]any{"c": nil}}, "ptr": nil, "raw": []any{n("1")},
			"tree": map[string]any{"id": "a", "next": []any{map[string]any{"id": "b"}}}, "any": map[string]any{"x": n("1")},
		},
		Payload: Fields{"text": "0001-01-01T00:00:00Z"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

type outer struct {
	audit
	UpdatedAt string `json:"updated_at" readback:"key"`
}

// As in JSON, the outer field of a name hides the embedded one, tag and all.
func TestFromOuterFieldWins(t *testing.T) {
	got, err := From(WriteIntent{}, outer{UpdatedAt: "now"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(WriteIntent{Key: Fields{"updated_at": "now"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFieldsOf(t *testing.T) {
	got, err := FieldsOf(struct {
		Status string `json:"status" readback:"ignore"`
		Rank   int    `json:"rank,omitempty"`
	}{Status: "open"})
	if diff := cmp.Diff(Fields{"status": "open"}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := FieldsOf(3); !errors.Is(err, ErrInvalid) {
		t.Errorf("a number has no fields, and FieldsOf says %v", err)
	}
}
