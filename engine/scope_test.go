package engine_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// refund is a write that a scope may cover.
func refund(fields string) intent.WriteIntent {
	w := intent.WriteIntent{Tool: "refund", Destination: "shop", Kind: "refund", Write: intent.Create}
	if err := json.Unmarshal([]byte(fields), &w); err != nil {
		panic(err)
	}
	return w
}

// A ceiling bounds a number wherever it is sent from and however it is written. A missing
// value, or one that is no number, is refused.
func TestACeilingBoundsWhatIsSent(t *testing.T) {
	ceiling := func(field string) *engine.Scope {
		return &engine.Scope{Max: []engine.Ceiling{{Field: field, Most: "500"}}}
	}
	for name, c := range map[string]struct {
		field, fields, refused string // the refused place; "" for covered
	}{
		"the ceiling itself":        {"/amount", `{"expect":{"amount":500}}`, ""},
		"a decimal below":           {"/amount", `{"expect":{"amount":499.999}}`, ""},
		"a decimal above":           {"/amount", `{"expect":{"amount":500.001}}`, "/expect/amount"},
		"an exponent below":         {"/amount", `{"expect":{"amount":5e2}}`, ""},
		"an exponent above":         {"/amount", `{"expect":{"amount":1e3}}`, "/expect/amount"},
		"a huge exponent":           {"/amount", `{"expect":{"amount":1e308}}`, "/expect/amount"},
		"an exponent out of bounds": {"/amount", `{"expect":{"amount":"1e999999999"}}`, "/expect/amount"},
		"a text":                    {"/amount", `{"expect":{"amount":"500.00"}}`, ""},
		"a text above":              {"/amount", `{"expect":{"amount":"1000.00"}}`, "/expect/amount"},
		"a text with commas":        {"/amount", `{"expect":{"amount":"1,00"}}`, "/expect/amount"},
		"a text in hexadecimal":     {"/amount", `{"expect":{"amount":"0x10"}}`, "/expect/amount"},
		"a fraction":                {"/amount", `{"expect":{"amount":"1000/1"}}`, "/expect/amount"},
		"a text with a currency":    {"/amount", `{"expect":{"amount":"5 EUR"}}`, "/expect/amount"},
		"infinity":                  {"/amount", `{"expect":{"amount":"-Infinity"}}`, "/expect/amount"},
		"no text":                   {"/amount", `{"expect":{"amount":""}}`, "/expect/amount"},
		"null":                      {"/amount", `{"expect":{"amount":null}}`, "/expect/amount"},
		"a boolean":                 {"/amount", `{"expect":{"amount":true}}`, "/expect/amount"},
		"an object":                 {"/amount", `{"expect":{"amount":{"value":1}}}`, "/expect/amount"},
		"below zero":                {"/amount", `{"expect":{"amount":-499}}`, ""},
		"far below zero":            {"/amount", `{"expect":{"amount":-501}}`, "/expect/amount"},
		"missing":                   {"/amount", `{"expect":{"note":"x"}}`, "/expect/amount"},
		"nothing is sent":           {"/amount", `{"write":"delete"}`, "/expect/amount"},
		"in the payload":            {"/amount", `{"expect":{"note":"x"},"payload":{"amount":3}}`, ""},
		"above in the payload":      {"/amount", `{"expect":{"amount":3},"payload":{"amount":501}}`, "/payload/amount"},
		"in the key":                {"/amount", `{"key":{"amount":5},"expect":{"note":"x"}}`, ""},
		"above in the key":          {"/amount", `{"key":{"amount":501},"expect":{"amount":5}}`, "/key/amount"},
		"required alone":            {"/amount", `{"expect":{"note":"x"},"require":{"amount":5}}`, "/expect/amount"},
		"above as required":         {"/amount", `{"expect":{"amount":5},"require":{"amount":501}}`, "/require/amount"},
		"in other letters alone":    {"/amount", `{"expect":{"Amount":5}}`, "/expect/amount"},
		"above in other letters":    {"/amount", `{"expect":{"amount":5},"payload":{"AMOUNT":501}}`, "/payload/AMOUNT"},
		"below another field":       {"/amount/value", `{"expect":{"amount":{"value":"5"}}}`, ""},
		"above below another field": {"/amount/value", `{"expect":{"amount":{"value":501}}}`, "/expect/amount/value"},
		"the field above is none":   {"/amount/value", `{"expect":{"amount":5}}`, "/expect/amount/value"},
		"each of a list":            {"/lines/amount", `{"expect":{"lines":[{"amount":5},{"amount":"6"}]}}`, ""},
		"the second of a list":      {"/lines/amount", `{"expect":{"lines":[{"amount":5},{"amount":501}]}}`, "/expect/lines/1/amount"},
		"one of a list lacks it":    {"/lines/amount", `{"expect":{"lines":[{"amount":5},{"note":"x"}]}}`, "/expect/lines/amount"},
		"an empty list":             {"/lines/amount", `{"expect":{"lines":[]}}`, "/expect/lines/amount"},
		"a list of numbers":         {"/amounts", `{"expect":{"amounts":[5,501]}}`, "/expect/amounts/1"},
		"a list in a list":          {"/amounts", `{"expect":{"amounts":[[5],[501]]}}`, "/expect/amounts/1/0"},
		"a name with a slash":       {"/a~1b", `{"expect":{"a/b":501}}`, "/expect/a~1b"},
	} {
		err := ceiling(c.field).Covers(refund(c.fields))
		var outside *engine.ScopeError
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.refused != "" && (!errors.As(err, &outside) || outside.Field != c.refused || !errors.Is(err, engine.ErrForbidden) || !strings.Contains(err.Error(), "at most 500")):
			t.Errorf("%s: got %v, want the field %s refused", name, err, c.refused)
		}
	}
	both := &engine.Scope{Max: []engine.Ceiling{{Field: "/amount", Most: "500"}, {Field: "/fee", Most: "0"}}}
	if err := both.Covers(refund(`{"expect":{"amount":1,"fee":0.01}}`)); err == nil || !strings.Contains(err.Error(), "/expect/fee") {
		t.Errorf("the second ceiling: %v", err)
	}
}

// Each list of a scope bounds its field by itself; an empty one bounds nothing.
func TestAScopeListsWhatIsCovered(t *testing.T) {
	for name, c := range map[string]struct {
		scope *engine.Scope
		says  string // "" for covered
	}{
		"none":              {nil, ""},
		"an empty one":      {&engine.Scope{}, ""},
		"all of it":         {&engine.Scope{Destinations: []string{"desk", "shop"}, Kinds: []string{"refund"}, Writes: []intent.WriteType{intent.Create}, Tools: []string{"refund"}}, ""},
		"a destination":     {&engine.Scope{Destinations: []string{"desk", "mail"}}, `may not write to destination "shop"; its scope lists desk, mail`},
		"in other letters":  {&engine.Scope{Destinations: []string{"Shop"}}, `may not write to destination "shop"`},
		"a kind":            {&engine.Scope{Kinds: []string{"order"}}, `may not write to kind "refund"; its scope lists order`},
		"a type":            {&engine.Scope{Writes: []intent.WriteType{intent.Update}}, `may not write to write type "create"; its scope lists update`},
		"a tool":            {&engine.Scope{Tools: []string{"refund_order"}}, `may not write to tool "refund"; its scope lists refund_order`},
		"one of them is no": {&engine.Scope{Destinations: []string{"shop"}, Tools: []string{"charge"}}, `may not write to tool "refund"`},
	} {
		err := c.scope.Covers(refund(`{"expect":{"amount":1}}`))
		if got := c.scope.String(); got == "" {
			t.Errorf("%s: it has no words", name)
		}
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", name, err, c.says)
		}
	}
}

// A step without an intent is known by its tool alone.
func TestACallWithoutAnIntent(t *testing.T) {
	w := refund(`{"expect":{"amount":1}}`)
	for name, c := range map[string]struct {
		scope   *engine.Scope
		tool    string
		intent  *intent.WriteIntent
		covered bool
	}{
		"no scope":                     {nil, "charge", nil, true},
		"its tool":                     {&engine.Scope{Tools: []string{"charge"}}, "charge", nil, true},
		"another tool":                 {&engine.Scope{Tools: []string{"charge"}}, "wire", nil, false},
		"a destination":                {&engine.Scope{Destinations: []string{"shop"}}, "charge", nil, false},
		"a kind":                       {&engine.Scope{Kinds: []string{"refund"}}, "charge", nil, false},
		"a type":                       {&engine.Scope{Writes: []intent.WriteType{intent.Create}}, "charge", nil, false},
		"a ceiling":                    {&engine.Scope{Max: []engine.Ceiling{{Field: "/amount", Most: "5"}}}, "charge", nil, false},
		"an intent":                    {&engine.Scope{Destinations: []string{"shop"}}, "refund", &w, true},
		"an intent under another tool": {&engine.Scope{Tools: []string{"refund"}}, "wire", &w, false},
	} {
		if err := c.scope.CoversCall(c.tool, c.intent); (err == nil) != c.covered {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAScopeThatCannotBe(t *testing.T) {
	many := make([]string, 51)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	ceiling := func(field, most string) *engine.Scope {
		return &engine.Scope{Max: []engine.Ceiling{{Field: field, Most: most}}}
	}
	for want, s := range map[string]*engine.Scope{
		"destination \"\"; want a name":      {Destinations: []string{""}},
		"kind \" order\"; want a name":       {Kinds: []string{" order"}},
		"tool \"wire\" twice":                {Tools: []string{"wire", "wire"}},
		"51 destinations; want at most 50":   {Destinations: many},
		"want create, update, upsert or del": {Writes: []intent.WriteType{"wipe"}},
		"ceiling on \"amount\"; want a JSON": ceiling("amount", "5"),
		"ceiling on \"\"; want a JSON":       ceiling("", "5"),
		"ceiling on \"/a~2\"; want a JSON":   ceiling("/a~2", "5"),
		"on /amount is \"\"; want a decimal": ceiling("/amount", ""),
		"on /amount is \"5 EUR\"; want":      ceiling("/amount", "5 EUR"),
		"on /amount is \"-5\"; want":         ceiling("/amount", "-5"),
		"on /amount is \"NaN\"; want":        ceiling("/amount", "NaN"),
		"two ceilings on /amount":            {Max: []engine.Ceiling{{Field: "/amount", Most: "5"}, {Field: "/amount", Most: "6"}}},
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := errors.Join((*engine.Scope)(nil).Check(), (&engine.Scope{}).Check(), ceiling("/amount", "99.95").Check()); err != nil {
		t.Error(err)
	}
}

// A write outside the caller's scope is refused before anything is recorded, read or sent, by
// any call. A destination of another tenant is reported as unknown first.
func TestAWriteOutsideOfTheScope(t *testing.T) {
	b := newBench(t, orders.Plain.Options(), nil)
	narrow := &engine.Scope{Destinations: []string{"orders"}, Max: []engine.Ceiling{{Field: "/amount_cents", Most: "10"}}}
	ctx := engine.As(t.Context(), engine.Principal{Name: "bot", Role: engine.RoleAgent, Scope: narrow})
	w := order("A-1", intent.Create)
	var outside *engine.ScopeError
	if _, err := b.engine.Do(ctx, w); !errors.As(err, &outside) || outside.Field != "/expect/amount_cents" {
		t.Errorf("Do: %v", err)
	}
	if _, err := b.engine.Enqueue(ctx, w); !errors.As(err, &outside) {
		t.Errorf("Enqueue: %v", err)
	}
	elsewhere := w
	elsewhere.Destination = "theirs"
	if _, err := b.engine.Do(ctx, elsewhere); !errors.Is(err, connectors.ErrUnknownDestination) || errors.Is(err, engine.ErrForbidden) {
		t.Errorf("a destination that is not there: %v", err)
	}
	if all, err := b.ledger.List(t.Context(), ledger.Filter{Tenant: w.Tenant}); err != nil || len(all) > 0 || len(b.ops()) > 0 {
		t.Errorf("%d writes are recorded, the destination was asked %d times, %v", len(all), len(b.ops()), err)
	}
	// The write is made without the scope; its outcome is not for this caller.
	wide := engine.As(t.Context(), engine.Principal{Name: "bot", Role: engine.RoleAgent})
	if _, err := b.engine.Do(wide, w); err != nil {
		t.Fatal(err)
	}
	if out, err := b.engine.Do(ctx, w); !errors.As(err, &outside) || out.ID != "" {
		t.Errorf("the write of another caller: %+v, %v", out, err)
	}
	if _, err := b.engine.Undo(ctx, w.Tenant, ledger.IDOf(w.StructuralKey()), engine.Undoing{By: "bot", Reason: "not wanted"}); !errors.Is(err, engine.ErrForbidden) {
		t.Errorf("its undoing: %v", err)
	}
}
