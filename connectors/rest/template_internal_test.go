package rest

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/intent"
)

const fuzzed = `
declaration: 1
name: f
system: F
base_url: https://api.example/base
probe: {path: /me}
kinds:
  thing:
    key: [id]
    writes:
      create:
        method: POST
        path: /a/{key.id}/b-{key.id}.json
        query: {one: "{fields.text}", two: "x{fields.text}y", three: fixed}
        headers: {X-One: "{fields.text}"}
        body:
          fixed: [1, {deep: "{{ {key.id} }}"}]
          whole: "{fields.text}"
          inside: "<!-- {fields.text} -->"
          object: {"...": "{fields.object}"}
      update:
        method: POST
        path: /form
        form: {one: "{fields.text}", two: "x{fields.text}y"}
    reads:
      - {name: list, by: key, path: "/things/{key.id}", query: {q: "id = '{key.id}'", id: "{key.id}"}, records: "$.things[*]"}
    record: {ref: $.id, fields: {id: $.id}}
`

// FuzzValuesStayInTheirPlace: no value changes how many segments a path has,
// which names a query or a form has, how many headers there are, or the
// structure of a body.
func FuzzValuesStayInTheirPlace(f *testing.F) {
	for _, s := range []string{"a", "", ".", "..", "a/b", `a\b`, "%2e%2e", "%2F", "?x=1", "#", "&y=2", "a=b;c", "a b+c", "'\"", "\r\nX: y", "\x00", "ü", "\xff", "{key.id}", "}}", "<b>", "\u2028"} {
		f.Add(s, s)
	}
	d, err := Load([]byte(fuzzed), "f.yaml")
	if err != nil {
		f.Fatal(err)
	}
	c, err := New(d, Options{})
	if err != nil {
		f.Fatal(err)
	}
	k := d.kinds["thing"]
	f.Fuzz(func(t *testing.T, id, text string) {
		v := values{"key": map[string]any{"id": id}, "fields": map[string]any{"text": text, "object": map[string]any{text: id}}}
		if d, err := k.writes[intent.Create].request.fill(filling{values: v}); err == nil {
			checkURL(t, c, d, 5, []string{"one", "three", "two"})
			if len(d.header) != 1 || strings.ContainsAny(d.header.Get("X-One"), "\r\n\x00") {
				t.Errorf("headers %q", d.header)
			}
			checkBody(t, d, id, text)
		}
		if d, err := k.writes[intent.Update].request.fill(filling{values: v}); err == nil {
			body, _, err := d.encoded()
			form, parseErr := url.ParseQuery(string(body))
			if err != nil || parseErr != nil || len(form) != 2 || form.Get("one") != text || form.Get("two") != "x"+text+"y" {
				t.Errorf("form %q: %v, %v", body, err, parseErr)
			}
		}
		if d, err := k.reads[0].request.fill(filling{values: v, guarded: true}); err == nil {
			checkURL(t, c, d, 4, []string{"id", "q"})
			if strings.Count(d.query.Get("q"), "'") != 2 {
				t.Errorf("query %q", d.query.Get("q"))
			}
		}
	})
}

func checkURL(t *testing.T, c *Connector, d *draft, segments int, names []string) {
	t.Helper()
	u, err := c.url(d.path, d.query)
	if err != nil {
		return
	}
	again, err := url.Parse(u.String())
	if err != nil {
		t.Fatalf("the URL %q is none", u)
	}
	plain := strings.Split(again.EscapedPath(), "/")
	query := again.Query()
	var got []string
	for name := range query {
		got = append(got, name)
	}
	slices.Sort(got)
	if again.Host != "api.example" || len(plain) != segments || plain[1] != "base" || again.Fragment != "" || !slices.Equal(got, names) {
		t.Errorf("the URL %q has %d segments and the names %q; want %d and %q", u, len(plain), got, segments, names)
	}
	for _, s := range plain[1:] {
		if one, err := url.PathUnescape(s); err != nil || one == "" || one == "." || one == ".." || strings.ContainsAny(one, "/\\") {
			t.Errorf("the URL %q has the segment %q", u, s)
		}
	}
}

func checkBody(t *testing.T, d *draft, id, text string) {
	t.Helper()
	body, _, err := d.encoded()
	if err != nil {
		return
	}
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatalf("the body %q is no JSON: %v", body, err)
	}
	object, _ := got["object"].(map[string]any)
	fixed, _ := got["fixed"].([]any)
	if len(got) != 4 || len(object) != 1 || len(fixed) != 2 {
		t.Errorf("the body %q has another structure", body)
	}
	if deep, _ := fixed[1].(map[string]any); len(deep) != 1 || deep["deep"] != "{ "+id+" }" {
		t.Errorf("the body %q has another structure", body)
	}
	if strings.ToValidUTF8(text, "") == text && (got["whole"] != text || got["inside"] != "<!-- "+text+" -->") {
		t.Errorf("the body %q does not hold the text %q as it is", body, text)
	}
}

// TestWhatIsMissingIsLeftOut is about bodies with values that are not there.
func TestWhatIsMissingIsLeftOut(t *testing.T) {
	full := values{"key": map[string]any{"id": "1"}, "stamp": "S", "fields": map[string]any{
		"a": "x", "n": json.Number("1.0"), "list": []any{"p", json.Number("2")}, "object": map[string]any{"m": nil, "a": "under"}, "null": nil}}
	tests := map[string]struct{ reason, body, want string }{
		"whole":              {"any type", `{v: "{fields.n}", l: "{fields.list}", o: "{fields.null}"}`, `{"l":["p",2],"o":null,"v":1.0}`},
		"missing":            {"its member goes", `{v: "{fields.no}", w: 1}`, `{"w":1}`},
		"object":             {"as a whole, when all in it is missing", `{v: {type: t, inner: [{x: "{fields.no}"}]}, w: 1}`, `{"w":1}`},
		"object in part":     {"one is there", `{v: {x: "{fields.no}", y: "{fields.a}"}}`, `{"v":{"y":"x"}}`},
		"empty as written":   {"nothing is missing in it", `{v: {}, w: []}`, `{"v":{},"w":[]}`},
		"the body itself":    {"is never left out", `{v: "{fields.no}"}`, `{}`},
		"text":               {"in longer text it must be there", `{v: "a {fields.no}"}`, ``},
		"text, optional":     {"the member goes", `{v: "a {fields.no?}", w: "{fields.a?}"}`, `{"w":"x"}`},
		"optional wins":      {"the other is missing, too", `{v: "{key.no} {fields.no?}", w: 1}`, `{"w":1}`},
		"text, blank":        {"nothing is put in", `{v: "a {fields.no|}b"}`, `{"v":"a b"}`},
		"what addresses":     {"never left out", `{v: "{ref}"}`, ``},
		"object in text":     {"no scalar", `{v: "a {fields.object}"}`, ``},
		"null in text":       {"no scalar", `{v: "a {fields.null}"}`, ``},
		"spread":             {"explicit members win", `{"...": "{fields.object}", a: over}`, `{"a":"over","m":null}`},
		"spreads":            {"the later one wins", `{"...": ["{fields.object}", "{fields}"]}`, `{"a":"x","list":["p",2],"m":null,"n":1.0,"null":null,"object":{"a":"under","m":null}}`},
		"spread of a list":   {"no object", `{"...": "{fields.list}"}`, ``},
		"list":               {"elements go in", `{v: [{"...": "{fields.list}"}, "{stamp}"]}`, `{"v":["p",2,"S"]}`},
		"list, missing":      {"no elements", `{v: [{"...": "{fields.no}"}, "{stamp}"]}`, `{"v":["S"]}`},
		"list, optional":     {"the list goes", `{v: [{"...": "{fields.no?}"}, "{stamp}"], w: 1}`, `{"w":1}`},
		"list of an object":  {"no list", `{v: [{"...": "{fields.object}"}]}`, ``},
		"element is missing": {"it goes", `{v: ["{fields.no}", "{fields.a}"]}`, `{"v":["x"]}`},
		"braces":             {"are written twice", `{v: "{{{fields.a}}} {{}}"}`, `{"v":"{x} {}"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := &loader{d: &Declaration{}, keys: map[string]bool{"id": true, "no": true}}
			n, ok := l.Parse([]byte(tt.body))
			if !ok {
				t.Fatal(l.Problems)
			}
			tree := l.newTree(n, "body", forWrites)
			if len(l.Problems) > 0 {
				t.Fatal(l.Problems)
			}
			got, err := tree.body(filling{values: full})
			text, _ := json.Marshal(got)
			if err != nil && tt.want != "" || err == nil && string(text) != tt.want {
				t.Errorf("%s: got %s, %v; want %s", tt.reason, text, err, tt.want)
			}
		})
	}
}

func TestSameKey(t *testing.T) {
	tests := map[string]struct {
		want, got any
		rules     []intent.RuleName
		same      bool
	}{
		"exact":         {"a", "a", nil, true},
		"case":          {"a", "A", nil, false},
		"folded":        {"straße K", "STRAßE \u212a", []intent.RuleName{intent.RuleFold}, true},
		"blank":         {"a", "a ", nil, false},
		"trimmed":       {"a", " a\t", []intent.RuleName{intent.RuleTrim}, true},
		"numbers":       {json.Number("1.0"), json.Number("1"), nil, true},
		"large numbers": {json.Number("9007199254740993"), json.Number("9007199254740992"), nil, false},
		"huge exponent": {json.Number("1"), json.Number("1e999999999"), nil, false},
		"number, text":  {json.Number("1"), "1", nil, false},
		"as strings":    {json.Number("1"), "1", []intent.RuleName{intent.RuleString}, true},
		"null":          {"", nil, nil, false},
		"list":          {"a", []any{"a"}, nil, false},
		"entities":      {"a&b", "a&amp;b", []intent.RuleName{intent.RuleUnescape}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var rules intent.Comparison
			for _, r := range tt.rules {
				rules = append(rules, intent.Rule{Name: r})
			}
			if got := sameKey(tt.want, tt.got, rules); got != tt.same {
				t.Errorf("%#v and %#v: %t, want %t", tt.want, tt.got, got, tt.same)
			}
		})
	}
}

// TestAPathThatSpansSegments: each segment is escaped by itself, and none leads to another place.
func TestAPathThatSpansSegments(t *testing.T) {
	d, err := Load([]byte(strings.Replace(fuzzed, "path: /a/{key.id}/b-{key.id}.json", "path: /a/{key.id/}/b", 1)), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := d.kinds["thing"].writes[intent.Create].request.route
	for id, want := range map[string]string{
		"one": "/a/one/b", "docs/a b/\u00fc?.md": "/a/docs/a%20b/%C3%BC%3F.md/b", "a/{b}": "/a/a/%7Bb%7D/b", "%2e%2e/x": "/a/%252e%252e/x/b",
		"": "", "/a": "", "a/": "", "a//b": "", "a/../b": "", "./a": "", `a\b`: "", "a/b\n": "",
	} {
		got, err := r.expand(values{"key": map[string]any{"id": id}})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", id, got, err, want)
		}
	}
}
