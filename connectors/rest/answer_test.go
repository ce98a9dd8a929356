package rest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/wire"
)

// itemsFile declares a small API. write and read replace lines of it.
func itemsFile(write, read string) string {
	return `
declaration: 1
name: items
system: Items
base_url: http://127.0.0.1:1/api
hosts: ["127.0.0.1:2"]
parameters:
  shop: {pattern: '[a-z]+', about: the shop, default: main}
auth:
  bearer: {secret: token}
probe: {path: "/shops/{param.shop}", must: [{path: $.open, equals: true}]}
kinds:
  item:
    key: [sku]
    writes:
      create:
        method: POST
        path: /items
        body: {"...": "{fields}", sku: "{key.sku}", stamp: "{stamp}"}
        ref: $.id
` + indent(8, write) + `
    reads:
      - name: list
        by: key
` + indent(8, read) + `
    record:
      ref: $.id
      stamp: {path: $.stamp}
      fields: {"...": $}
    profile: {stamped: true}
`
}

func indent(n int, text string) string {
	var all []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		all = append(all, strings.Repeat(" ", n)+strings.TrimRight(line, "\n"))
	}
	return strings.Join(all, "\n")
}

const plainRead = `
strength: strong
path: /items
query: {sku: "{key.sku}"}
records: $.items[*]
`

// items connects a declaration with a handler.
func items(t *testing.T, file string, h http.HandlerFunc) *rest.Connector {
	t.Helper()
	d, err := rest.Load([]byte(file), "items.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.New(d, rest.Options{
		Transport: wire.Transport(h, nil),
		Secrets:   map[string]func(context.Context) (string, error){"token": func(context.Context) (string, error) { return "hunter2", nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func item(w intent.WriteType) intent.WriteIntent {
	in := intent.WriteIntent{
		Tenant: "a", Workflow: "w", Tool: "t", Destination: "items", Kind: "item", Write: w,
		Key: intent.Fields{"sku": "A-1"},
	}
	if w != intent.Delete {
		in.Expect = intent.Fields{"title": "one"}
	}
	return in
}

func itemRequest(w intent.WriteType, before ...connectors.Record) connectors.Request {
	in := item(w)
	return connectors.Request{Intent: in, Stamp: in.Stamp(), IdempotencyKey: "rbk-1", Attempt: 1, Before: &connectors.Observation{Records: before}}
}

// says answers every request in the same way.
func says(status int, body string, headers ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			rw.Header().Set(headers[i], headers[i+1])
		}
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	}
}

func TestWhatAnswersMean(t *testing.T) {
	const rules = `
answers:
  - {status: 200, where: {path: "$.errors[*]", exists: true}, means: refused}
  - {status: 403, where: {path: $.message, contains: rate limit}, means: throttled}
  - {status: 400, where: {path: "$.errors[*].code", equals: [DUPLICATE, TAKEN]}, means: conflict}
  - {status: 207, means: unknown}
`
	const throttled = `system: Items
throttle:
  - {status: [403, 429], where: {header: X-Remaining, equals: "0"}, header: X-Reset, form: epoch}
  - {status: 503, where: {path: $.code, equals: overloaded}, header: X-Wait}
`
	file := strings.Replace(itemsFile(rules, plainRead), "system: Items\n", throttled, 1)
	tests := map[string]struct {
		reason   string
		answer   http.HandlerFunc
		fate     connectors.Fate
		conflict bool
		wait     time.Duration
		ref      string
	}{
		"created":         {"the usual", says(201, `{"id":17}`), connectors.FateAnswered, false, 0, "17"},
		"no JSON":         {"a 2xx was applied, whatever its body", says(201, `<html>`), connectors.FateAnswered, false, 0, ""},
		"huge number":     {"numbers stay exact", says(201, `{"id":12345678901234567890}`), connectors.FateAnswered, false, 0, "12345678901234567890"},
		"ref is null":     {"what is no id is none", says(201, `{"id":null}`), connectors.FateAnswered, false, 0, ""},
		"200 with errors": {"an error in a success", says(200, `{"errors":[{"code":"x"}]}`), connectors.FateRefused, false, 0, ""},
		"200 without":     {"no error in it", says(200, `{"id":1,"errors":[]}`), connectors.FateAnswered, false, 0, "1"},
		"200 unreadable":  {"it may have held an error", says(200, `{"errors":[`), connectors.FateUnknown, false, 0, ""},
		"limit in words":  {"recognized by the text alone", says(403, `{"message":"secondary rate limit hit"}`, "Retry-After", "7"), connectors.FateThrottled, false, 7 * time.Second, ""},
		"limit by header": {"recognized by headers", says(429, `{}`, "X-Remaining", "0", "X-Reset", "946684860"), connectors.FateThrottled, false, time.Minute, ""},
		"403":             {"no rule fits", says(403, `{"message":"no"}`), connectors.FateRefused, false, 0, ""},
		"taken":           {"the record exists", says(400, `{"errors":[{"code":"TAKEN"}]}`), connectors.FateRefused, true, 0, ""},
		"400":             {"another 400", says(400, `{"errors":[{"code":"BAD"}]}`), connectors.FateRefused, false, 0, ""},
		"503 of the API":  {"its own word", says(503, `{"code":"overloaded"}`, "X-Wait", "3"), connectors.FateThrottled, false, 3 * time.Second, ""},
		"503 of a proxy":  {"the fate is unknown", says(503, `<html>`), connectors.FateUnknown, false, 0, ""},
		"502":             {"the fate is unknown", says(502, `{}`), connectors.FateUnknown, false, 0, ""},
		"207":             {"a bare rule", says(207, `{}`), connectors.FateUnknown, false, 0, ""},
		"409":             {"evidence", says(409, `{}`), connectors.FateRefused, true, 0, ""},
		"301":             {"not followed", says(301, ``, "Location", "http://127.0.0.1:1/api/elsewhere"), connectors.FateUnknown, false, 0, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the clock starts at 2000-01-01
				requests := 0
				c := items(t, file, func(rw http.ResponseWriter, r *http.Request) { requests++; tt.answer(rw, r) })
				got, err := c.Write(t.Context(), itemRequest(intent.Create))
				var e *connectors.Error
				conflict, wait := false, time.Duration(0)
				if errors.As(err, &e) {
					conflict, wait = e.Conflict, e.RetryAfter
				}
				if connectors.FateOf(err) != tt.fate || conflict != tt.conflict || wait != tt.wait || got.Ref != tt.ref {
					t.Errorf("%s: fate %q (%v), conflict %t, wait %v, ref %q; want %q, %t, %v, %q", tt.reason, connectors.FateOf(err), err, conflict, wait, got.Ref, tt.fate, tt.conflict, tt.wait, tt.ref)
				}
				if requests != 1 {
					t.Errorf("%d requests reached the destination, want 1", requests)
				}
				if err != nil && strings.Contains(err.Error(), "hunter2") {
					t.Errorf("the secret is in the error: %v", err)
				}
			})
		})
	}
}

func TestReadsThatProveNothing(t *testing.T) {
	tests := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   string // in the error; "" when the read is good and finds nothing
	}{
		"nothing":           {"an empty list is absence", says(200, `{"items":[]}`), ""},
		"near":              {"another key is another record", says(200, `{"items":[{"id":1,"sku":"a-1"}]}`), ""},
		"not asked for":     {"the filter was ignored", says(200, `{"items":[{"id":1,"sku":"B-7"}]}`), "not asked for"},
		"none has the key":  {"a first page of everything, where most have no key", says(200, `{"items":[{"id":1,"sku":null}]}`), "not asked for"},
		"all keys empty":    {"nothing is in every key", says(200, `{"items":[{"id":1,"sku":""},{"id":2,"sku":" "}]}`), "not asked for"},
		"no list":           {"another shape is no absence", says(200, `{"results":[]}`), "there is no $.items"},
		"list is null":      {"null is no list", says(200, `{"items":null}`), "$.items is null, want a list"},
		"list is an object": {"another shape", says(200, `{"items":{}}`), "$.items is an object"},
		"record is null":    {"no record", says(200, `{"items":[null]}`), "a record is null"},
		"record has no id":  {"two records could not be distinguished", says(200, `{"items":[{"sku":"A-1"}]}`), "a record has no $.id"},
		"no key shown":      {"all records would look foreign", says(200, `{"items":[{"id":1,"SKU":"A-1"}]}`), "asked for by sku does not show it"},
		"HTML":              {"a page of a proxy", says(200, `<html>Sign in</html>`), "not one JSON value"},
		"twice":             {"which of the two", says(200, `{"items":[],"items":[{"id":1,"sku":"A-1"}]}`), "each member once"},
		"trailing":          {"cut or glued", says(200, `{"items":[]}{}`), "not one JSON value"},
		"empty body":        {"no answer", says(200, ``), "not one JSON value"},
		"204":               {"no answer", says(204, ``), "want 200"},
		"304":               {"hides the change", says(304, ``), "304"},
		"206":               {"a part", says(206, `{"items":[]}`), "want 200"},
		"404":               {"may be a lack of permission", says(404, `{}`), "404"},
		"401":               {"no absence", says(401, `{}`), "401"},
		"429":               {"no absence", says(429, `{}`), "429"},
		"redirect":          {"not followed", says(302, ``, "Location", "/api/items"), "302"},
		"deep":              {"nested without end", says(200, `{"items":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}`), "nested more than"},
		"endless":           {"a body without end", func(rw http.ResponseWriter, r *http.Request) { endless(rw) }, "too long"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := items(t, itemsFile("", plainRead), tt.answer)
			got, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create), Stamp: "rb-x"})
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("%s: %v", tt.reason, err)
			case tt.want == "" && (len(got.Records) > 0 || got.Strength != connectors.Strong):
				t.Errorf("%s: got %v, want a strong absence", tt.reason, got)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%s: got %v, %v; want an error with %q", tt.reason, got, err, tt.want)
			case err != nil && (len(err.Error()) > 500 || strings.Contains(err.Error(), "Sign in")):
				t.Errorf("the error repeats the answer: %v", err)
			}
		})
	}
}

// A missing list is no empty list, and reading again does not help: the API itself reports it, in
// JSON. A gateway's 404 is different.
func TestNoPath(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   bool
		says   string
	}{
		"not found":   {says(404, `{"message":"No such shop"}`), true, `"No such shop"`},
		"not allowed": {says(405, `{}`), true, "405"},
		"a gateway":   {says(404, `<html>default backend</html>`), false, "404"},
		"nothing":     {says(404, ``), false, "404"},
		"gone":        {says(410, `{}`), false, "410"},
	} {
		t.Run(name, func(t *testing.T) {
			c := items(t, itemsFile("", plainRead), tt.answer)
			_, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create), Stamp: "rb-x"})
			if errors.Is(err, connectors.ErrNoTarget) != tt.want || !strings.Contains(fmt.Sprint(err), tt.says) {
				t.Errorf("%v; want no target: %t, and %s in it", err, tt.want, tt.says)
			}
		})
	}
}

// A later page that is not there is no missing list: it ended where records were
// removed meanwhile.
func TestNoLaterPage(t *testing.T) {
	c := items(t, itemsFile("", plainRead+"paging: {next_url: $.next}\n"), func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("page") {
			says(404, `{"message":"No such page"}`)(rw, r)
			return
		}
		says(200, `{"items":[],"next":"/items?page=2"}`)(rw, r)
	})
	_, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create), Stamp: "rb-x"})
	if err == nil || errors.Is(err, connectors.ErrNoTarget) {
		t.Errorf("%v; want an error that does not say that the list is missing", err)
	}
}

// endless writes more than is read. The wire keeps what is written, so it ends
// above the bound.
func endless(rw http.ResponseWriter) {
	block := []byte(strings.Repeat(" ", 1<<16))
	for range 100 {
		_, _ = rw.Write(block)
	}
}

// postsFile declares posts that have their marks in their text.
const postsFile = `
declaration: 1
name: posts
system: Posts
base_url: http://127.0.0.1:1
probe: {path: /me}
kinds:
  post:
    key: [mark]
    writes: {create: {method: POST, path: /posts, body: {text: "<!-- {stamp} {key.mark} -->{fields.text|}"}}}
    reads:
      - {name: list, by: [key, stamp], path: /posts, records: "$.data.posts[*].node", visible: {path: /forum, must: [{path: $.member, equals: true}]}}
      - {name: get, by: ref, strength: strong, complete: true, path: "/posts/{ref}", record: $.node, absent: [404], version: {header: ETag}}
    record:
      ref: $.id
      stamp: {path: $.text, match: "<!-- (rb-[a-z2-7]+) "}
      keep: {path: $.state, equals: [open, draft]}
      fields:
        mark: {path: $.text, match: "<!-- [a-z2-7-]+ (\\S+) -->"}
        text: {path: $.text, strip: "<!-- .*? -->"}
        title: {path: "$.title[*].plain", join: "+"}
        tags: {path: "$.tags[*].name", list: true, without: "^rb-"}
        author: $.author.name
    profile: {stamped: true, settle: 1m}
`

func TestRecordsOfARead(t *testing.T) {
	in := intent.WriteIntent{Tenant: "a", Workflow: "w", Tool: "t", Destination: "posts", Kind: "post", Write: intent.Create,
		Key: intent.Fields{"mark": "M1"}, Expect: intent.Fields{"text": "hello"}}
	node := func(id int, state, text string) string {
		return fmt.Sprintf(`{"node":{"id":%d,"state":%q,"text":%q,"title":[{"plain":"a"},{"plain":"b"}],"tags":[{"name":"x"},{"name":"rb-1"}],"author":null}}`, id, state, text)
	}
	mine := node(7, "open", "<!-- "+in.Stamp()+" M1 -->hello")
	tests := map[string]struct {
		reason string
		list   []string
		one    map[string]string // by path, what a GET of one answers
		member string
		want   []connectors.Record
		err    string
	}{
		"ours": {"taken apart as declared, and read again by its ref", []string{mine, node(8, "open", "<!-- rb-a M10 -->x"), node(9, "closed", "<!-- rb-a M1 -->x"), node(10, "open", "no mark")},
			map[string]string{"/posts/7": mine}, "true",
			[]connectors.Record{{Ref: "7", Version: `"v1"`, Stamp: in.Stamp(), Fields: intent.Fields{"mark": "M1", "text": "hello", "title": "a+b", "tags": []any{"x"}}}}, ""},
		"gone by now":       {"what the list still shows is not there any more", []string{mine}, map[string]string{}, "true", []connectors.Record{}, ""},
		"another by now":    {"under its ref there is another one", []string{mine}, map[string]string{"/posts/7": node(7, "open", "<!-- rb-b M2 -->x")}, "true", []connectors.Record{}, ""},
		"kept out":          {"closed is as good as gone", []string{mine}, map[string]string{"/posts/7": node(7, "closed", "<!-- rb-b M1 -->x")}, "true", []connectors.Record{}, ""},
		"two refs are two":  {"whatever they have in common", []string{mine, node(8, "draft", "<!-- "+in.Stamp()+" M1 -->hello")}, map[string]string{"/posts/7": mine, "/posts/8": node(8, "draft", "<!-- "+in.Stamp()+" M1 -->hello")}, "true", nil, ""},
		"not a member":      {"a token that is no member sees nothing", []string{}, nil, "false", nil, "what it would be in cannot be read"},
		"a member":          {"nothing is there", []string{}, nil, "true", []connectors.Record{}, ""},
		"state is missing":  {"what says whether it counts is not there", []string{`{"node":{"id":1,"text":"x"}}`}, nil, "true", nil, "says whether it counts"},
		"element in no box": {"another shape", []string{`{"id":1}`}, nil, "true", nil, "does not have what"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := func(rw http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/forum":
					_, _ = io.WriteString(rw, `{"member":`+tt.member+`}`)
				case r.URL.Path == "/posts":
					_, _ = io.WriteString(rw, `{"data":{"posts":[`+strings.Join(tt.list, ",")+`]}}`)
				case tt.one[r.URL.Path] != "":
					rw.Header().Set("ETag", `"v1"`)
					_, _ = io.WriteString(rw, tt.one[r.URL.Path])
				default:
					says(404, `{"message":"not found"}`)(rw, r)
				}
			}
			d, err := rest.Load([]byte(postsFile), "posts.yaml")
			if err != nil {
				t.Fatal(err)
			}
			c, err := rest.New(d, rest.Options{Transport: wire.Transport(http.HandlerFunc(h), nil)})
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%s: got %v, %v; want an error with %q", tt.reason, got, err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tt.reason, err)
			}
			if tt.want == nil && len(got.Records) == 2 {
				return
			}
			if d := cmp.Diff(tt.want, got.Records); d != "" || got.Strength != connectors.Weak {
				t.Errorf("%s: strength %q, want weak (the list is); -want +got:\n%s", tt.reason, got.Strength, d)
			}
		})
	}
}

// TestARefThatCannotBeAsked: an unusable ref of a receipt must not prevent all reads, and a
// record with another spelling of its ref is that record.
func TestARefThatCannotBeAsked(t *testing.T) {
	file := strings.Replace(itemsFile("", plainRead), "    record:\n", "      - {name: get, by: ref, strength: strong, record: $, absent: [404], path: '/items/{ref}'}\n    record:\n", 1)
	for ref, want := range map[string]int{"/api/items/7": 1, "..": 1, "7": 1, "007": 1, "8": 1} {
		var asked []string
		c := items(t, file, func(rw http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Path)
			switch r.URL.Path {
			case "/api/items":
				says(200, `{"items":[{"id":7,"sku":"A-1"}]}`)(rw, r)
			case "/api/items/7", "/api/items/007":
				says(200, `{"id":7,"sku":"A-1"}`)(rw, r)
			default:
				says(404, `{}`)(rw, r)
			}
		})
		got, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create), Ref: ref})
		if err != nil || len(got.Records) != want || got.Strength != connectors.Strong {
			t.Errorf("ref %q: %v, %v (asked %q); want %d record", ref, got, err, asked, want)
		}
	}
}
