package redact

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// A value is found in any supported quoting and encoding, in sentences and in other values.
func TestOtherWaysOfWriting(t *testing.T) {
	const value = `Ada O'Neil (privat)/ada+x@hot.example & ü <"q">` + " \U0001F600"
	v := vault(t, []Key{key("k1", 1)}, cards)
	f := intent.Fields{"name": value, "around": " Blank Canary\n", "sum": json.Number("1234567.50"), "power": json.Number("1e5"), "tenth": json.Number("15.00")}
	for title, tc := range map[string]struct {
		reason, text string
		open         bool
	}{
		"JavaScript's URLs":  {"it encodes a blank and an @ in other ways than Go does", `/find?q=Ada%20O'Neil%20(privat)%2Fada%2Bx%40hot.example%20%26%20%C3%BC%20%3C%22q%22%3E%20%F0%9F%98%80`, false},
		"Java's URLs":        {"and a blank as forms do", `q=Ada+O%27Neil+%28privat%29%2Fada%2bx%40hot.example+%26+%c3%bc+%3C%22q%22%3E+%F0%9F%98%80`, false},
		"jQuery's forms":     {"a blank as forms do, and an apostrophe as it is", `q=Ada+O'Neil+(privat)%2Fada%2Bx%40hot.example+%26+%C3%BC+%3C%22q%22%3E+%F0%9F%98%80`, false},
		"Python's HTML":      {"entities have names and numbers", "<b>Ada O&#x27;Neil (privat)/ada+x@hot.example &amp; ü &lt;&quot;q&quot;&gt; \U0001F600</b>", false},
		"PHP's HTML":         {"letters have names, too", "Ada O&#039;Neil (privat)/ada+x@hot.example &amp; &uuml; &lt;&quot;q&quot;&gt; &#128512;", false},
		"PHP's JSON":         {"it escapes slashes, and a letter beyond 16 bits in two halves", `{"got":"Ada O'Neil (privat)\/ada+x@hot.example & \u00FC <\"q\"> \ud83d\ude00"}`, false},
		"bytes in C":         {"one letter has several", `Ada O'Neil (privat)/ada+x@hot.example & \xc3\xbc <"q"> \xf0\x9f\x98\x80`, false},
		"JSON in HTML":       {"a page shows an answer", `{&quot;got&quot;:&quot;Ada O&#x27;Neil (privat)\/ada+x@hot.example &amp; \u00fc &lt;\&quot;q\&quot;&gt; ` + "\U0001F600", false},
		"without blanks":     {"most destinations cut them off", "who is Blank Canary?", false},
		"canonical number":   {"1.50 is 1.5", "got 1234567.5", false},
		"number in powers":   {"as Go prints one", "got 1.2345675e+06", false},
		"number without":     {"or without", "got 100000", false},
		"a card in a URL":    {"a pattern finds it, too", "/find?card=%34111111111111111&x", false},
		"a short number":     {"15 is in many a sentence", "after 150 s", true},
		"a short number, of": {"but 15 alone may be it", "got 15, no more", false},
		"nothing":            {"quotes alone say nothing", `<p>&quot;plain&quot; 100% \"other\" %zz %4 \u12 \x \`, true},
	} {
		s := v.Scope("acme", "w", []string{"/name", "/around", "/sum", "/power", "/tenth"})
		s.Learn(f)
		if got := s.Text(tc.text); (got == tc.text) != tc.open {
			t.Errorf("%s (%s): %q", title, tc.reason, got)
		}
		if short := strings.Contains(title, "short"); !short && s.Reveals(tc.text) == tc.open {
			t.Errorf("%s (%s): as a value it is found: %t", title, tc.reason, !tc.open)
		}
	}
}

// A value that was met in one write is sensitive in another one beside it, and in what is to be
// sent.
func TestWhatWasMetCounts(t *testing.T) {
	s := vault(t, []Key{key("k1", 1)}).Scope("acme", "w", []string{"/name"})
	s.Learn(intent.Fields{"name": "Lovelace"})
	if got := s.Beside("w2").Text("of Lovelace"); strings.Contains(got, "Lovelace") {
		t.Errorf("beside: %q", got)
	}
	if got, err := s.SealBytes([]byte("what is prepared, which may have any form")); err != nil || !strings.HasPrefix(string(got), Prefix) {
		t.Errorf("prepared: %q, %v", got, err)
	}
}

// Repeated quoting is decoded a bounded number of times.
func TestUnescapedIsBounded(t *testing.T) {
	text := strings.Repeat(`&amp;amp;%2525\\\\u0026`, 100)
	if all := unescaped(text); len(all) == 0 || len(all) > maxUnescaped {
		t.Errorf("%d readings, want 1 to %d", len(all), maxUnescaped)
	}
	if all := unescaped(strings.Repeat("%20", maxText)); all != nil {
		t.Errorf("%d readings of what is too long to be searched", len(all))
	}
	if all := unescaped(`\u00fc \ud83d\ude00 \ud83d \n \q \U0001F600 \x41`); !slices.Contains(all, "ü \U0001F600 \ufffd \n q \U0001F600 A") {
		t.Errorf("%q", all)
	}
}

// Objects can have values as member names. Such a name is sealed in intents and in observations,
// and opens to the original.
func TestNamesThatAreValues(t *testing.T) {
	v := vault(t, []Key{key("k1", 1)})
	for title, tc := range map[string]struct {
		reason, name string
		open         bool
	}{
		"the value":    {"a map by address", "ada@hot.example", false},
		"another case": {"which destinations change", "Ada@Hot.Example", false},
		"a part of it": {"with a word before it", "mailto:ada@hot.example", false},
		"in a URL":     {"encoded", "ada%40hot.example", false},
		"a word":       {"it is all of the name", "Lovelace", false},
		"a field":      {"a mere word is in many names", "lovelace_id", true},
		"a number":     {"it is one that nothing else is", "1234567", false},
		"another":      {"it contains nothing", "contact", true},
	} {
		w := sample(t)
		w.Expect, w.Sensitive = fields(t, `{"email":"ada@hot.example","surname":"Lovelace","number":1234567.0}`), []string{"/email", "/surname", "/number"}
		w.Payload = intent.Fields{"by": map[string]any{tc.name: json.Number("1")}}
		s := v.Scope("acme", "w")
		stored, err := s.SealIntent(w)
		if err != nil {
			t.Fatalf("%s: %v", title, err)
		}
		seen, err := s.SealObservation(connectors.Observation{Records: []connectors.Record{{Ref: "1", Fields: w.Payload}}})
		if err != nil {
			t.Fatalf("%s: %v", title, err)
		}
		for what, text := range map[string][]byte{"intent": stored, "observation": seen} {
			if open := strings.Contains(string(text), tc.name); open != tc.open {
				t.Errorf("%s (%s): the %s is %s", title, tc.reason, what, text)
			}
		}
		again, err := v.Scope("acme", "w").OpenIntent(stored)
		if err != nil || !cmp.Equal(again.Payload, w.Payload) {
			t.Errorf("%s: it opens to %v, %v", title, again.Payload, err)
		}
	}
}

// A path that is named by a value cannot be sealed, and is refused.
func TestSensitivePathsAreRefused(t *testing.T) {
	v := vault(t, []Key{key("k1", 1)}, cards)
	for title, tc := range map[string]struct {
		reason, want string
		change       func(*intent.WriteIntent)
	}{
		"ignore": {"it is kept in the clear", "/ignore has a path", func(w *intent.WriteIntent) { w.Ignore = []string{"/by/DE02120300000000202051"} }},
		"absent": {"likewise", "/absent has a path", func(w *intent.WriteIntent) { w.Absent = []string{"/4111111111111111/x"} }},
		"compare": {"likewise", "/compare has a path", func(w *intent.WriteIntent) {
			w.Compare = map[string]intent.Comparison{"/by/DE02120300000000202051": {}}
		}},
		"sensitive": {"likewise", "/sensitive has a path", func(w *intent.WriteIntent) { w.Sensitive = append(w.Sensitive, "/by/DE02120300000000202051") }},
		"an undoing": {"its paths are those of a write that was taken", "", func(w *intent.WriteIntent) {
			w.Compensates, w.Ignore = "wr_1", []string{"/by/DE02120300000000202051"}
		}},
		"a word": {"a field can be named as some value is", "", func(w *intent.WriteIntent) { w.Expect["address"], w.Ignore = "address", []string{"/address/x"} }},
	} {
		w := sample(t)
		tc.change(&w)
		_, err := v.Scope("acme", "w").SealIntent(w)
		if tc.want == "" && err != nil || tc.want != "" && (!errors.Is(err, intent.ErrInvalid) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s (%s): %v; want %q", title, tc.reason, err, tc.want)
		}
		if err != nil && (strings.Contains(err.Error(), "DE0212") || strings.Contains(err.Error(), "4111")) {
			t.Errorf("%s: the error contains the value: %v", title, err)
		}
	}
}
