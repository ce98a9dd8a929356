package contracttest

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		reason, want, got string
		problems          []string
	}{
		"same":             {"in whatever order", `{"a":1,"b":[true,null]}`, `{"b":[true,null],"a":1}`, nil},
		"no body":          {"where none is wanted", "", "", nil},
		"some body":        {"where none is wanted", "", "{}", []string{"the answer has a body, want none"}},
		"no JSON":          {"it is not what was meant", "{}", "<html>", []string{"the body is not JSON: invalid character '<' looking for beginning of value"}},
		"missing":          {"always there", `{"a":null}`, `{}`, []string{"/a is missing"}},
		"null for missing": {"they are two things", `{}`, `{"a":null}`, []string{"/a is there (<nil>), and the file does not name it"}},
		"additional":       {"the file does not name it", `{"a":1}`, `{"a":1,"b":2}`, []string{"/b is there (2), and the file does not name it"}},
		"value":            {"another one", `{"a":{"b":1}}`, `{"a":{"b":2}}`, []string{"/a/b is 2, want 1"}},
		"length":           {"one more", `{"a":[1]}`, `{"a":[1,2]}`, []string{"/a is [1 2], want a list of 1"}},
		"text for number":  {"another type", `{"a":1}`, `{"a":"1"}`, []string{"/a is 1, want 1"}},
		"null for object":  {"another type", `{"a":{}}`, `{"a":null}`, []string{"/a is <nil>, want an object"}},
		"known":            {"put in", `{"a":"{{id}}","b":"x_{{id}}_y"}`, `{"a":"wf_1","b":"x_wf_1_y"}`, nil},
		"known otherwise":  {"another one", `{"a":"{{id}}"}`, `{"a":"wf_2"}`, []string{`/a is "wf_2", want wf_1`}},
		"learned":          {"and then compared", `{"a":"{{new}}","b":"{{new}}"}`, `{"a":"x","b":"y"}`, []string{`/b is "y", want x`}},
		"learned within":   {"also inside a text", `{"a":"{{new}}","b":"it is {{new}}"}`, `{"a":"x","b":"it is x"}`, nil},
		"any":              {"even null", `{"a":"<any>"}`, `{"a":null}`, nil},
		"string":           {"not empty", `{"a":"<string>"}`, `{"a":""}`, []string{`/a is "", want <string>`}},
		"number":           {"no text", `{"a":"<number>","b":"<number>"}`, `{"a":1,"b":"1"}`, []string{`/b is "1", want <number>`}},
		"object":           {"no list", `{"a":"<object>","b":"<object>"}`, `{"a":{},"b":[]}`, []string{`/b is []interface {}{}, want <object>`}},
		"list":             {"no object", `{"a":"<list>","b":"<list>"}`, `{"a":[],"b":{}}`, []string{`/b is map[string]interface {}{}, want <list>`}},
		"timestamp":        {"RFC 3339", `{"a":"<timestamp>","b":"<timestamp>"}`, `{"a":"2026-01-02T03:04:05.6Z","b":"2026-01-02 03:04:05"}`, []string{`/b is "2026-01-02 03:04:05", want <timestamp>`}},
		"match":            {"an expression", `{"a":"<match ^wf_[0-9a-f]{8}$>","b":"<match ^x$>"}`, `{"a":"wf_0123abcd","b":"xx"}`, []string{`/b is "xx", want <match ^x$>`}},
		"uuid":             {"of RFC 9562, in the contract's namespace", `{"a":"<uuid5 {{id}}:pay>"}`, `{"a":"1195f1b0-a0b6-5a52-9c7f-0f3bdbb4cb9b"}`, []string{`/a is "1195f1b0-a0b6-5a52-9c7f-0f3bdbb4cb9b", want <uuid5 wf_1:pay>`}},
		"uuid, right":      {"as other libraries make it", `{"a":"<uuid5 {{id}}:pay>"}`, `{"a":"17d73f22-d0ad-5cf0-bb3d-15d9b2fdb9c7"}`, nil},
		"repeated":         {"many times", `{"a":"{{ä*3}}"}`, `{"a":"äää"}`, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := values{"id": "wf_1"}
			if diff := cmp.Diff(test.problems, v.compare(test.want, test.got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestParse(t *testing.T) {
	f, err := parse("f", "About it.\n@needs clock roles\n\n### One\n# why\n@wait 61s\n@unchanged {{id}}\nPOST /a?b=c\nX-Tenant-ID: t\n\n{\n\n}\n\nHTTP/1.1 201\nAllow: POST, GET\n\n{\"a\": 1}\n\n### Two\nGET /b\n\nHTTP/1.1 204\n")
	if err != nil {
		t.Fatal(err)
	}
	want := File{Name: "f", Needs: []string{"clock", "roles"}, Exchanges: []Exchange{
		{Title: "One", Line: 4, Wait: 61e9, Unchanged: "{{id}}", Method: "POST", Path: "/a?b=c", Header: http.Header{"X-Tenant-Id": {"t"}}, Body: "{\n\n}",
			Status: 201, WantHeader: http.Header{"Allow": {"POST, GET"}}, WantBody: `{"a": 1}`},
		{Title: "Two", Line: 20, Method: "GET", Path: "/b", Header: http.Header{}, Status: 204, WantHeader: http.Header{}},
	}}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for text, says := range map[string]string{
		"@needs\n":        "not known before the first exchange",
		"### A\nGET /a\n": "has no answer",
		"### A\n":         "has no request",
		"### A\n@waits 1s\nGET /\n\nHTTP/1.1 200":  "not known",
		"### A\n@wait soon\nGET /\n\nHTTP/1.1 200": "invalid duration",
		"### A\nGET\n\nHTTP/1.1 200":               "want a method and a path",
		"### A\nGET /\nnonsense\n\nHTTP/1.1 200":   "no header",
		"### A\nGET /\n\nHTTP/1.1 OK":              "want a number",
	} {
		if _, err := parse("f", text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// scripted is a server that responds as configured, and can change by itself.
type scripted struct {
	status int
	body   string
	header http.Header
	state  func() string
}

func (s scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	body, status := s.body, s.status
	if r.Method == http.MethodGet {
		body, status = s.state(), 200
	}
	header := http.Header{}
	maps.Copy(header, s.header)
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// A file whose demand is not met is reported, whatever part of it is not.
func TestExchangesThatDiffer(t *testing.T) {
	const text = "### A\n@unchanged w\nPOST /a\n\nHTTP/1.1 409\nAllow: POST\n\n{\"code\": \"X\"}\n"
	still := func() string { return "{}" }
	n := 0
	tests := map[string]struct {
		server scripted
		ok     bool
	}{
		"as it says": {scripted{409, `{"code":"X"}`, http.Header{"Allow": {"POST"}}, still}, true},
		"status":     {scripted{400, `{"code":"X"}`, http.Header{"Allow": {"POST"}}, still}, false},
		"body":       {scripted{409, `{"code":"Y"}`, http.Header{"Allow": {"POST"}}, still}, false},
		"header":     {scripted{409, `{"code":"X"}`, nil, still}, false},
		"changed":    {scripted{409, `{"code":"X"}`, http.Header{"Allow": {"POST"}}, func() string { n++; return strings.Repeat("x", n) }}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := parse("f", text)
			if err != nil {
				t.Fatal(err)
			}
			s := Server{URL: "http://x.test", Client: &http.Client{Transport: test.server}}
			problems, err := s.exchange(t.Context(), f, f.Exchanges[0], values{})
			if err != nil || (len(problems) == 0) != test.ok {
				t.Errorf("%v, %v; want it to be met: %t", problems, err, test.ok)
			}
		})
	}
}
