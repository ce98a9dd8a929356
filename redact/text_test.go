package redact

import (
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/readback-go/readback/intent"
)

func TestText(t *testing.T) {
	v := vault(t, []Key{key("k1", 1)}, cards, Pattern{"mail", regexp.MustCompile(`[a-z.]+@[a-z.]+[a-z]`)})
	long := strings.Repeat("0123456789", 9)
	f := fields(t, `{"name":"Jürgen \"J\" <O'Neil>/1","pin":"Q7z","one":"X","vip":true,"sum":129.5,"card":"4111111111111111","list":["alpha-beta","beta-gamma-delta"],"open":"plain"}`)
	f["long"], f["huge"] = long, strings.Repeat("abcdefgh", 200)
	marks := []string{"/huge", "/name", "/pin", "/one", "/vip", "/sum", "/card", "/list", "/long"}
	shown := func(v2 any) string { return shortened(v.Scope("acme", "w").Digest(v2)) }
	name := f["name"].(string)
	for title, tc := range map[string]struct{ reason, text, want string }{
		"nothing":        {"it says nothing of a value", "found exactly as requested", "found exactly as requested"},
		"open value":     {"it is not marked", "plain is refused", "plain is refused"},
		"as it is":       {"the simple case", "bad name " + name + "!", "bad name " + shown(name) + "!"},
		"case":           {"destinations lower what they echo", "bad name " + strings.ToUpper(name), "bad name " + shown(name)},
		"JSON":           {"an answer quoted in an error", `{"got":"Jürgen \"J\" <O'Neil>/1"}`, `{"got":"` + shown(name) + `"}`},
		"JSON, as Go's":  {"which escapes markup", `Jürgen \"J\" \u003cO'Neil\u003e/1`, shown(name)},
		"URL query":      {"an error names the URL", `?q=J%c3%bcrgen+%22J%22+%3CO%27Neil%3E%2F1`, "?q=" + shown(name)},
		"URL path":       {"the same", `/J%C3%BCrgen%20%22J%22%20%3CO%27Neil%3E%2F1/y`, "/" + shown(name) + "/y"},
		"HTML":           {"a page of error", `<b>Jürgen &#34;J&#34; &lt;O&#39;Neil&gt;/1</b>`, `<b>` + shown(name) + `</b>`},
		"number":         {"it is written as it is", "129.50 is too much", shown(json.Number("129.5")) + "0 is too much"},
		"short":          {"it cannot be taken out of a sentence", "the pin q7Z is wrong", withheld},
		"short, inside":  {"nor out of a word", "pin:aaQ7zbb", withheld},
		"one letter":     {"as a word of its own", `got "x"`, withheld},
		"one letter, in": {"every text has it", "an exact text", "an exact text"},
		"boolean":        {"as a word of its own", "vip is true, construed", "vip is " + shown(true) + ", construed"},
		"overlapping":    {"no part of either may stay", "alpha-beta-gamma-delta", shown("alpha-beta")},
		"cut":            {"what is long is often cut", "got " + long[:60] + "… (90 bytes)", "got " + shown(long) + "… (90 bytes)"},
		"cut early":      {"a text is cut anywhere", "you said card 41111111111111", "you said card " + shown("4111111111111111")},
		"cut with dots":  {"and says so", "you said alpha-be… (90 bytes)", "you said " + shown("alpha-beta") + "… (90 bytes)"},
		"not cut":        {"a word that a value begins with", "the alpha-betics", "the alpha-betics"},
		"not cut, short": {"little of it says little", "all about alpha", "all about alpha"},
		"in the middle":  {"it is another word there", "beta-gamma is a ray", "beta-gamma is a ray"},
		"JSON in JSON":   {"an answer quoted in an answer", `{"body":"{\"got\":\"Jürgen \\\"J\\\" <O'Neil>/1\"}"}`, `{"body":"{\"got\":\"` + shown(name) + `\"}"}`},
		"JSON in Go":     {"an answer quoted in an error", strconv.Quote(`{"got":"Jürgen \"J\" \u003cO'Neil\u003e/1"}`), `"{\"got\":\"` + shown(name) + `\"}"`},
		"JSON in a URL":  {"a query that is JSON", url.QueryEscape(`{"q":"Jürgen \"J\" <O'Neil>/1"}`), url.QueryEscape(`{"q":"`) + shown(name) + url.QueryEscape(`"}`)},
		"long":           {"it continues for longer than is searched for", "got " + f["huge"].(string), withheld},
		"pattern":        {"also where it is not marked", "mail to a.b@c.example, please", "mail to " + shown("a.b@c.example") + ", please"},
		"too long":       {"it is not searched", strings.Repeat("y", maxText+1), withheld},
		"bytes":          {"destinations send what they like", "\xff" + name + "\xff", "\xff" + shown(name) + "\xff"},
	} {
		s := v.Scope("acme", "w", marks)
		s.Learn(f)
		if got := s.Text(tc.text); got != tc.want {
			t.Errorf("%s (%s):\n got %q\nwant %q", title, tc.reason, got, tc.want)
		}
	}
}

func TestTooManyValues(t *testing.T) {
	v := vault(t, []Key{key("k1", 1)})
	s := v.Scope("acme", "w", []string{"/list"})
	list := make([]any, maxLiterals+1)
	for i := range list {
		list[i] = json.Number(strings.Repeat("1", 5) + string(rune('0'+i%10)) + strings.Repeat("2", i/10+1))
	}
	s.Learn(intent.Fields{"list": list})
	if got := s.Text("found"); got != withheld {
		t.Errorf("%q; want nothing shown where not all values can be searched for", got)
	}
	if !s.Reveals("anything") {
		t.Error("a name was not recognised as a value")
	}
}

// TestSearchIsBounded: a text that nearly matches each of very many values costs no more than any
// other, and reveals none of them.
func TestSearchIsBounded(t *testing.T) {
	s := vault(t, []Key{key("a", 1)}).Scope("t", "w", []string{"/a"})
	for i := range maxLiterals {
		s.meet(strings.Repeat("a", cutLiteral-1) + strconv.Itoa(i))
	}
	for name, c := range map[string]struct {
		text      string
		withholds bool
		reason    string
	}{
		"nearly each of them": {strings.Repeat("a", maxText), true, "scanning it would take a second"},
		"long and harmless":   {strings.Repeat("b", maxText), false, "it is scanned at once"},
		"short":               {strings.Repeat("a", 2*minLiteral), false, "few letters are few comparisons"},
	} {
		if _, withhold := s.met.find(c.text, true); withhold != c.withholds {
			t.Errorf("%s: withheld is %t: %s", name, withhold, c.reason)
		}
	}
}

// Names that cannot be sealed are refused, with the place.
func TestNamesAreRefused(t *testing.T) {
	v := vault(t, []Key{key("k1", 1)}, cards)
	for name, tc := range map[string]struct {
		reason string
		change func(*intent.WriteIntent)
		want   string
	}{
		"idempotency key": {"it is looked up in the clear", func(w *intent.WriteIntent) { w.IdempotencyKey = "pay:DE02120300000000202051" }, "/idempotency_key contains a sensitive value"},
		"workflow":        {"it is part of the structural key", func(w *intent.WriteIntent) { w.Workflow = "wf de02120300000000202051" }, "/workflow contains"},
		"pattern":         {"also where it is not marked", func(w *intent.WriteIntent) { w.CorrelationID = "4111111111111111" }, "/correlation_id contains"},
		"member name":     {"names are kept", func(w *intent.WriteIntent) { w.Payload["4111111111111111"] = "x" }, `/payload has a member whose name the pattern "card" is found in`},
		"its own names":   {"sealed with their object", func(w *intent.WriteIntent) { w.Expect["address"] = map[string]any{"4111111111111111": "x"} }, ""},
		"part of a word":  {"by chance", func(w *intent.WriteIntent) { w.Workflow = "xDE02120300000000202051x" }, ""},
		"short number":    {"by chance", func(w *intent.WriteIntent) { w.Workflow, w.Expect["amount"] = "order 1000", json.Number("1000") }, ""},
	} {
		w := sample(t)
		tc.change(&w)
		_, err := v.Scope("acme", "w").SealIntent(w)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s (%s): %v", name, tc.reason, err)
		case tc.want != "" && (!errors.Is(err, intent.ErrInvalid) || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s (%s): %v; want %q", name, tc.reason, err, tc.want)
		case err != nil && strings.Contains(strings.ToLower(err.Error()), "de0212"):
			t.Errorf("%s: the error contains the value: %v", name, err)
		}
	}
}

func TestCheckClear(t *testing.T) {
	for name, tc := range map[string]struct{ document, want string }{
		"none":     {`{"a":"x rbs1: y"}`, ""},
		"value":    {`{"expect":{"a":[1,"rbs1:x"]}}`, "/expect/a/1 begins with"},
		"name":     {`{"expect":{"rbs1:x":1}}`, "/expect begins with"},
		"quoted":   {`{"a":"say \"rbs1:x\""}`, ""},
		"no JSON":  {`{"rbs1:`, ""},
		"top text": {`"rbs1:"`, "the intent begins with"},
	} {
		err := CheckClear(json.RawMessage(tc.document))
		if tc.want == "" && err != nil || tc.want != "" && (!errors.Is(err, intent.ErrInvalid) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v; want %q", name, err, tc.want)
		}
	}
}
