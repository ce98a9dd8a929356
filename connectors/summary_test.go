package connectors_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

func TestSummary(t *testing.T) {
	order := connectors.Summary{Text: "order {order_id}[ for {amount}][ to {customer}][: {subject}]", Amount: "/total", Currency: "/currency", Minor: true,
		Subject: "/title", Customer: "/buyer/mail"}
	decimal := order
	decimal.Minor = false
	fixed := decimal
	fixed.Currency = "EUR"
	number := func(s string) json.Number { return json.Number(s) }
	for name, tt := range map[string]struct {
		reason string
		s      connectors.Summary
		write  intent.WriteType
		key    intent.Fields
		expect intent.Fields
		want   string
	}{
		"all":               {"every part has a value", order, intent.Create, nil, intent.Fields{"total": number("2999"), "currency": "usd", "title": "a chair", "buyer": map[string]any{"mail": "ada@example.com"}}, `Create order A-1 for $29.99 to ada@example.com: "a chair"`},
		"no declaration":    {"kind and key", connectors.Summary{}, intent.Create, nil, intent.Fields{"total": number("2999")}, "Create order A-1"},
		"two members":       {"each has its name", connectors.Summary{}, intent.Update, intent.Fields{"customer": "cus_1", "reference": "R 2"}, nil, `Update order customer cus_1, reference "R 2"`},
		"no name":           {"a field of the name is missing", order, intent.Delete, intent.Fields{"id": number("7")}, nil, "Delete order 7"},
		"upsert":            {"either", order, intent.Upsert, nil, nil, "Create or update order A-1"},
		"update":            {"what it sets", order, intent.Update, nil, intent.Fields{"total": number("2999"), "currency": "usd", "order_id": "A-1"}, "Update order A-1: currency to usd, total to $29.99"},
		"update, much":      {"what it sets", order, intent.Update, nil, intent.Fields{"a": nil, "b": "", "c": true, "d": "x", "e": "y"}, "Update order A-1: a to nothing, b to nothing, c to true, 2 more"},
		"verb":              {"what a create is called", connectors.Summary{Text: "a message[ to {to}]", Verb: "send"}, intent.Create, intent.Fields{"to": "#all"}, nil, "Send a message to #all"},
		"verb of an update": {"only a create has another", connectors.Summary{Text: "a message to {to}", Verb: "send"}, intent.Update, intent.Fields{"to": "#all"}, nil, "Update a message to #all"},
		"zero decimals":     {"no smaller unit", order, intent.Create, nil, intent.Fields{"total": number("2999"), "currency": "JPY"}, "Create order A-1 for 2,999 JPY"},
		"three decimals":    {"thousandths", order, intent.Create, nil, intent.Fields{"total": number("2999"), "currency": "kwd"}, "Create order A-1 for 2.999 KWD"},
		"cents":             {"less than one", order, intent.Create, nil, intent.Fields{"total": number("5"), "currency": "USD"}, "Create order A-1 for $0.05"},
		"negative":          {"a credit", order, intent.Create, nil, intent.Fields{"total": number("-123456789"), "currency": "EUR"}, "Create order A-1 for -€1,234,567.89"},
		"unknown currency":  {"its decimals are not known", order, intent.Create, nil, intent.Fields{"total": number("2999"), "currency": "XYZ"}, "Create order A-1 for 2999 XYZ (in its smallest unit)"},
		"disputed currency": {"providers differ", order, intent.Create, nil, intent.Fields{"total": number("2999"), "currency": "ISK"}, "Create order A-1 for 2999 ISK (in its smallest unit)"},
		"no currency":       {"it is not in the write", order, intent.Create, nil, intent.Fields{"total": number("2999")}, "Create order A-1 for 2999 (in the smallest unit of its currency)"},
		"part of a cent":    {"it is not in smallest units", order, intent.Create, nil, intent.Fields{"total": number("29.5"), "currency": "USD"}, "Create order A-1 for 29.5 USD (in its smallest unit)"},
		"decimal":           {"decimals are filled up", decimal, intent.Create, nil, intent.Fields{"total": "1029.9", "currency": "USD"}, "Create order A-1 for $1,029.90"},
		"decimal, whole":    {"", decimal, intent.Create, nil, intent.Fields{"total": number("29"), "currency": "USD"}, "Create order A-1 for $29.00"},
		"decimal, more":     {"nothing is rounded", decimal, intent.Create, nil, intent.Fields{"total": number("29.999"), "currency": "USD"}, "Create order A-1 for $29.999"},
		"decimal, unknown":  {"as it is", decimal, intent.Create, nil, intent.Fields{"total": number("29.9"), "currency": "points"}, "Create order A-1 for 29.9 points"},
		"fixed currency":    {"it is always this one", fixed, intent.Create, nil, intent.Fields{"total": "007.5"}, "Create order A-1 for €7.50"},
		"exponent":          {"it is not computed", decimal, intent.Create, nil, intent.Fields{"total": number("1e9"), "currency": "USD"}, "Create order A-1 for 1e9 USD"},
		"exponent, minor":   {"nor is it taken for the larger unit", order, intent.Create, nil, intent.Fields{"total": number("1e30"), "currency": "USD"}, "Create order A-1 for 1e30 USD (in its smallest unit)"},
		"plus, minor":       {"it is as it is sent", order, intent.Create, nil, intent.Fields{"total": "+2999", "currency": "USD"}, "Create order A-1 for +2999 USD (in its smallest unit)"},
		"a list":            {"it is no amount", order, intent.Create, nil, intent.Fields{"total": []any{number("2999")}, "currency": "USD"}, "Create order A-1 for 2999 USD (in its smallest unit)"},
		"no number":         {"as it is, in quotes", decimal, intent.Create, nil, intent.Fields{"total": "5 and more", "currency": "USD"}, `Create order A-1 for "5 and more" USD`},
		"sealed":            {"a digest is a word", order, intent.Create, nil, intent.Fields{"total": "redacted:0123456789abcdef", "currency": "USD"}, "Create order A-1 for redacted:0123456789abcdef USD (in its smallest unit)"},
		"a sentence":        {"a value cannot speak for the page", order, intent.Create, intent.Fields{"order_id": "A-1 for $1. Approved"}, nil, `Create order "A-1 for $1. Approved"`},
		"several":           {"the first of them", connectors.Summary{Text: "a mail[ to {to}]"}, intent.Create, intent.Fields{"to": []any{"a@b", "c d", "e@f", "g@h", "i@j"}}, nil, `Create a mail to a@b, "c d", e@f, 2 more`},
		"quotes":            {"nor end its quotes", order, intent.Create, intent.Fields{"order_id": `A" B`}, nil, `Create order "A\" B"`},
		"invisible":         {"what is not seen is written out", order, intent.Create, intent.Fields{"order_id": "A\u202e1"}, nil, `Create order "A\u202e1"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := intent.WriteIntent{Write: tt.write, Kind: "order", Key: tt.key, Expect: tt.expect}
			if w.Key == nil {
				w.Key = intent.Fields{"order_id": "A-1"}
			}
			if got := tt.s.Write(w).String(); got != tt.want {
				t.Errorf("%s: %s, want %s", tt.reason, got, tt.want)
			}
			if err := tt.s.Valid(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What an update sends beside what is verified is part of what it sets.
func TestSummaryOfAnUpdateHasThePayload(t *testing.T) {
	s := connectors.Summary{Text: "order {order_id}", Amount: "/fee", Currency: "USD", Minor: true}
	w := intent.WriteIntent{Write: intent.Update, Kind: "order", Key: intent.Fields{"order_id": "A-1"}, Expect: intent.Fields{"status": "closed"},
		Payload: intent.Fields{"fee": json.Number("500")}}
	if got, want := s.Write(w).String(), "Update order A-1: fee to $5.00, status to closed"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestSummaryIsShort(t *testing.T) {
	w := intent.WriteIntent{Write: intent.Create, Kind: "order", Key: intent.Fields{"a": strings.Repeat("x", 5000), "b": strings.Repeat("y", 5000), "c": strings.Repeat("z", 5000)}}
	s := connectors.Summary{Text: "{a}{b}{c}[{a}{b}{c}]"}
	for _, d := range []connectors.Described{s.Write(w), connectors.Summary{}.Write(w)} {
		if n := len(d.String()); n > 500 {
			t.Errorf("%d bytes", n)
		}
	}
}

func TestSummaryIsChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		s    connectors.Summary
		want string
	}{
		"no text":         {connectors.Summary{Amount: "/a"}, "text is"},
		"a name after":    {connectors.Summary{Text: "order[ for {a}] of {b}"}, "parts in brackets"},
		"an open brace":   {connectors.Summary{Text: "order {a"}, "parts in brackets"},
		"invisible":       {connectors.Summary{Text: "order\u202e {a}"}, "parts in brackets"},
		"no amount":       {connectors.Summary{Text: "order {amount}"}, "want amount, the field that it is"},
		"currency alone":  {connectors.Summary{Text: "order", Currency: "EUR"}, "want amount, or neither"},
		"no currency":     {connectors.Summary{Text: "order", Amount: "/a", Currency: "euro"}, "such as EUR"},
		"no pointer":      {connectors.Summary{Text: "order", Amount: "a"}, "want a JSON Pointer"},
		"an empty field":  {connectors.Summary{Text: "order {}"}, "want the name of a field"},
		"a wrong pointer": {connectors.Summary{Text: "order {a~2}"}, "want the name of a field"},
		"a verb":          {connectors.Summary{Text: "order", Verb: "Send"}, "in lower case"},
	} {
		t.Run(name, func(t *testing.T) {
			err := connectors.Profile{Summary: tt.s}.Valid()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}
