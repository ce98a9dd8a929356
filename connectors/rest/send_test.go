package rest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
)

// recorder is what reached the destination.
type recorder struct {
	requests []string
	header   http.Header
}

func (h *recorder) serve(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.requests = append(h.requests, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+string(body)))
	h.header = r.Header
	_, _ = io.WriteString(rw, `{"id":"1"}`)
}

// writesFile is itemsFile with more writes; more is at their depth.
func writesFile(more string) string {
	return strings.Replace(itemsFile("", plainRead), "    reads:\n", indent(6, more)+"\n    reads:\n", 1)
}

var (
	itemStamp = item(intent.Create).Stamp()
	itemThere = connectors.Record{Ref: "r 1", Version: `"v7"`, Stamp: "rb-old", Fields: intent.Fields{"title": "old", "tags": []any{"a"}}}
)

// sendCases are the cases of TestWhatIsSent.
var sendCases = map[string]struct {
	reason  string
	writes  string
	request func(r *connectors.Request)
	write   intent.WriteType
	before  []connectors.Record
	want    string
	header  map[string]string
	err     string
}{
	"create": {"what is declared", "", nil, intent.Create, nil, `POST /api/items {"sku":"A-1","stamp":"` + itemStamp + `","title":"one"}`,
		map[string]string{"Authorization": "Bearer hunter2", "Content-Type": "application/json", "Idempotency-Key": ""}, ""},
	"quotes stay inside": {"a value is a value", "", func(r *connectors.Request) { r.Intent.Expect["title"] = "\"},\"x\":{\"<&>\r\n" }, intent.Create, nil,
		`POST /api/items {"sku":"A-1","stamp":"` + itemStamp + `","title":"\"},\"x\":{\"<&>\r\n"}`, nil, ""},
	"exact numbers": {"no digit is lost", "", func(r *connectors.Request) { r.Intent.Expect["title"] = json.Number("1.10") }, intent.Create, nil,
		`POST /api/items {"sku":"A-1","stamp":"` + itemStamp + `","title":1.10}`, nil, ""},
	"quoted key": {"a structured field", "update: {method: PATCH, path: \"/items/{ref}\", needs: ref, body: {title: \"{fields.title}\"}, idempotency: {header: Idempotency-Key, form: quoted, window: 1h}}", nil,
		intent.Update, []connectors.Record{itemThere}, `PATCH /api/items/r%201 {"title":"one"}`, map[string]string{"Idempotency-Key": `"rbk-1"`}, ""},
	"key in body": {"no header", "update: {method: POST, path: \"/items/{ref}\", needs: ref, form: {title: \"{fields.title}\", key: \"{idempotency_key}\", gone: \"{fields.no}\"}, idempotency: {window: 1h}}", nil,
		intent.Update, []connectors.Record{itemThere}, `POST /api/items/r%201 key=rbk-1&title=one`, map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Idempotency-Key": ""}, ""},
	"no key": {"it could not be known again", "update: {method: POST, path: \"/items/{ref}\", needs: ref, body: {title: \"{fields.title}\"}, idempotency: {header: X-Idempotency-Key, window: 1h}}",
		func(r *connectors.Request) { r.IdempotencyKey = "" }, intent.Update, []connectors.Record{itemThere}, "", nil, "{idempotency_key} is missing"},
	"not conditional": {"a condition only when it is asked for", putItem, nil, intent.Upsert, []connectors.Record{itemThere}, `PUT /api/items/A-1 {"title":"one"}`, map[string]string{"If-Match": "", "If-None-Match": ""}, ""},
	"if match":        {"as it was read", putItem, func(r *connectors.Request) { r.Conditional = true }, intent.Upsert, []connectors.Record{itemThere}, `PUT /api/items/A-1 {"guard":{"seen":"\"v7\""},"title":"one"}`, map[string]string{"If-Match": `"v7"`}, ""},
	"if none match":   {"nothing was there", putItem, func(r *connectors.Request) { r.Conditional = true }, intent.Upsert, nil, `PUT /api/items/A-1 {"title":"one"}`, map[string]string{"If-None-Match": "*", "If-Match": ""}, ""},
	"no version": {"a condition on nothing", putItem, func(r *connectors.Request) { r.Conditional = true; r.Before.Records[0].Version = "" }, intent.Upsert, []connectors.Record{itemThere}, "", nil,
		"needs one record with a version"},
	"two before": {"which one", putItem, func(r *connectors.Request) { r.Conditional = true }, intent.Upsert, []connectors.Record{itemThere, itemThere}, "", nil, "needs one record with a version"},
	"no condition": {"none is declared", "", func(r *connectors.Request) { r.Conditional = true }, intent.Create, []connectors.Record{itemThere}, "", nil,
		"cannot be conditional"},
	"what was before": {"kept where the API replaces all", "update: {method: PUT, path: \"/items/{ref}\", needs: ref, query: {v: \"{version}\"}, body: {title: \"{fields.title}\", tags: [{\"...\": \"{before.tags}\"}, \"{stamp_before}\"], none: {a: [\"{before.none}\"]}}}", nil,
		intent.Update, []connectors.Record{itemThere}, `PUT /api/items/r%201?v=%22v7%22 {"tags":["a","rb-old"],"title":"one"}`, nil, ""},
	"no record before": {"a change of nothing", "delete: {method: DELETE, path: \"/items/{key.sku}\"}", nil, intent.Delete, nil, "", nil, "exactly one record"},
	"two records":      {"which one", "delete: {method: DELETE, path: \"/items/{key.sku}\"}", nil, intent.Delete, []connectors.Record{itemThere, {Ref: "2"}}, "", nil, "exactly one record"},
	"no such write":    {"none is declared", "", nil, intent.Delete, []connectors.Record{itemThere}, "", nil, "no delete"},
	"count":            {"one request writes one record", "", func(r *connectors.Request) { r.Intent.Count = 2 }, intent.Create, nil, "", nil, "/count"},
	"not mentioned": {"a field that would silently not be sent", "update: {method: PATCH, path: \"/items/{ref}\", needs: ref, body: {title: \"{fields.title}\"}}",
		func(r *connectors.Request) { r.Intent.Expect["price"] = json.Number("1") }, intent.Update, []connectors.Record{itemThere}, "", nil, "/expect/price"},
	"absent": {"a field that would silently stay", "update: {method: PATCH, path: \"/items/{ref}\", needs: ref, body: {title: \"{fields.title}\"}}",
		func(r *connectors.Request) { r.Intent.Absent = []string{"/tags"} }, intent.Update, []connectors.Record{itemThere}, "", nil, "/absent: /tags is there"},
	"absent already": {"nothing to take away", "update: {method: PATCH, path: \"/items/{ref}\", needs: ref, body: {title: \"{fields.title}\"}}",
		func(r *connectors.Request) { r.Intent.Absent = []string{"/x"} }, intent.Update, []connectors.Record{itemThere}, `PATCH /api/items/r%201 {"title":"one"}`, nil, ""},
	"dots":             {"another place", "delete: {method: DELETE, path: \"/items/{ref}\", needs: ref}", nil, intent.Delete, []connectors.Record{{Ref: ".."}}, "", nil, `the segment ".."`},
	"not ASCII":        {"escaped as UTF-8", "delete: {method: DELETE, path: \"/items/{ref}\", needs: ref}", nil, intent.Delete, []connectors.Record{{Ref: "\u012fä€😀"}}, "DELETE /api/items/%C4%AF%C3%A4%E2%82%AC%F0%9F%98%80", nil, ""},
	"slash":            {"another place to many servers", "delete: {method: DELETE, path: \"/items/{ref}\", needs: ref}", nil, intent.Delete, []connectors.Record{{Ref: "a/../b"}}, "", nil, "has a slash"},
	"whole number":     {"1.0 and 1 are one key", "delete: {method: DELETE, path: \"/items/{key.sku}\"}", func(r *connectors.Request) { r.Intent.Key["sku"] = json.Number("12.0e1") }, intent.Delete, []connectors.Record{itemThere}, `DELETE /api/items/120`, nil, ""},
	"fraction":         {"as it is", "delete: {method: DELETE, path: \"/items/{key.sku}\"}", func(r *connectors.Request) { r.Intent.Key["sku"] = json.Number("1.50") }, intent.Delete, []connectors.Record{itemThere}, `DELETE /api/items/1.50`, nil, ""},
	"stamp in a field": {"another write's record would be made of this one", "", func(r *connectors.Request) { r.Intent.Expect["other"] = []any{"rb-" + strings.Repeat("a", 32)} }, intent.Create, nil, "", nil, "read as a stamp"},
	"no form":          {"an object where a scalar belongs", "update: {method: PATCH, path: \"/items/{ref}\", needs: ref, query: {t: \"{fields.title}\"}}", func(r *connectors.Request) { r.Intent.Expect["title"] = map[string]any{} }, intent.Update, []connectors.Record{itemThere}, "", nil, "is an object"},
	"header": {"a value cannot begin another header", "update: {method: PATCH, path: \"/items/{ref}\", needs: ref, headers: {X-Title: \"{fields.title}\"}}",
		func(r *connectors.Request) { r.Intent.Expect["title"] = "a\r\nX-Evil: b" }, intent.Update, []connectors.Record{itemThere}, "", nil, "control character"},
	"spread of text": {"no object", "update: {method: PATCH, path: \"/items/{ref}\", needs: ref, body: {\"...\": \"{fields.title}\"}}", nil, intent.Update, []connectors.Record{itemThere}, "", nil, "want an object"},
	"query":          {"a value stays one value", "update: {method: PATCH, path: \"/items/{ref}\", needs: ref, query: {t: \"{fields.title}\"}}", func(r *connectors.Request) { r.Intent.Expect["title"] = "a&b=c d+#?%" }, intent.Update, []connectors.Record{itemThere}, `PATCH /api/items/r%201?t=a%26b%3Dc%20d%2B%23%3F%25`, nil, ""},
}

func TestWhatIsSent(t *testing.T) {
	for name, tt := range sendCases {
		t.Run(name, func(t *testing.T) {
			var h recorder
			c := items(t, writesFile(tt.writes), h.serve)
			r := itemRequest(tt.write, append([]connectors.Record(nil), tt.before...)...)
			if tt.request != nil {
				tt.request(&r)
			}
			_, err := c.Write(t.Context(), r)
			if tt.err != "" {
				if connectors.FateOf(err) != connectors.FateRefused || !errors.Is(err, rest.ErrIntent) || !strings.Contains(err.Error(), tt.err) || len(h.requests) > 0 {
					t.Errorf("%s: %v, and %q was sent; want not sent and %q", tt.reason, err, h.requests, tt.err)
				}
				return
			}
			if d := cmp.Diff([]string{tt.want}, h.requests); d != "" || err != nil {
				t.Errorf("%s: %v; -want +sent:\n%s", tt.reason, err, d)
			}
			for name, want := range tt.header {
				if got := h.header.Get(name); got != want {
					t.Errorf("%s: the header %s is %q, want %q", tt.reason, name, got, want)
				}
			}
		})
	}
}

const putItem = `upsert: {method: PUT, path: "/items/{key.sku}", unique: true, body: {title: "{fields.title}"}, condition: {headers: {If-Match: "{version}"}, body: {guard: {seen: "{version}"}}, if_absent: {headers: {If-None-Match: "*"}}}}`

// TestTheIntentIsNotChanged: bodies are put together of the intent's own values.
func TestTheIntentIsNotChanged(t *testing.T) {
	var h recorder
	c := items(t, writesFile(`update: {method: PATCH, path: "/items/{ref}", needs: ref, body: {ticket: "{fields.ticket}"}, condition: {body: {ticket: {stamp: "{version}"}}}}`), h.serve)
	r := itemRequest(intent.Update, connectors.Record{Ref: "1", Version: "9"})
	r.Intent.Expect, r.Conditional = intent.Fields{"ticket": map[string]any{"a": "b"}}, true
	if _, err := c.Write(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if want := []string{`PATCH /api/items/1 {"ticket":{"a":"b","stamp":"9"}}`}; !cmp.Equal(want, h.requests) {
		t.Errorf("sent %q, want %q", h.requests, want)
	}
	if d := cmp.Diff(intent.Fields{"ticket": map[string]any{"a": "b"}}, r.Intent.Expect); d != "" {
		t.Errorf("the intent was changed:\n%s", d)
	}
}

// TestReadsTakePlainTextInside: how the text around a value quotes is unknown.
func TestReadsTakePlainTextInside(t *testing.T) {
	read := "path: /items\nquery: {q: \"sku = '{key.sku}'\"}\nrecords: $.items[*]\n"
	for sku, ok := range map[string]bool{"A-1": true, "a.b_c:d@e": true, "' OR ''='": false, "a b": false, "": false, "a\\": false, "a\"b": false, "ä": false} {
		var h recorder
		c := items(t, itemsFile("", read), func(rw http.ResponseWriter, r *http.Request) {
			h.serve(rw, r)
		})
		in := item(intent.Create)
		in.Key["sku"] = sku
		_, err := c.Read(t.Context(), connectors.Query{Intent: in})
		if sent := len(h.requests) == 1; sent != ok || !ok && !errors.Is(err, rest.ErrIntent) {
			t.Errorf("key %q: sent %q, error %v; want it sent: %t", sku, h.requests, err, ok)
		}
	}
}

func TestForgedStamps(t *testing.T) {
	file := strings.Replace(itemsFile("", plainRead), "stamp: {path: $.stamp}", `stamp: {path: $.title, match: "<(rb-[a-z2-7]+)>"}`, 1)
	file = strings.Replace(file, `stamp: "{stamp}"`, `title: "<{stamp}> {fields.title}"`, 1)
	var h recorder
	c := items(t, file, h.serve)
	r := itemRequest(intent.Create)
	r.Intent.Expect["title"] = "text with <rb-abc> in it"
	if _, err := c.Write(t.Context(), r); connectors.FateOf(err) != connectors.FateRefused || len(h.requests) > 0 {
		t.Errorf("a value that would be read as a stamp was sent: %v", err)
	}
}

func TestKeysThatCannotBeAskedFor(t *testing.T) {
	file := strings.Replace(itemsFile("", plainRead), "key: [sku]", "key: [sku]\n    key_patterns: {sku: '[A-Z0-9-]+'}", 1)
	for name, key := range map[string]intent.Fields{
		"pattern": {"sku": "A,1"}, "pattern in part": {"sku": "A-1\n"}, "object": {"sku": map[string]any{}}, "null": {"sku": nil},
		"another": {"id": "1"}, "more": {"sku": "A-1", "id": "1"}, "none": {},
	} {
		t.Run(name, func(t *testing.T) {
			var h recorder
			c := items(t, file, h.serve)
			r := itemRequest(intent.Create)
			r.Intent.Key = key
			_, err := c.Write(t.Context(), r)
			_, readErr := c.Read(t.Context(), connectors.Query{Intent: r.Intent})
			if connectors.FateOf(err) != connectors.FateNotSent || !errors.Is(readErr, rest.ErrIntent) || len(h.requests) > 0 {
				t.Errorf("write %v, read %v, received %q; want neither sent", err, readErr, h.requests)
			}
			if !strings.Contains(fmt.Sprint(err), "/key") {
				t.Errorf("the error does not name the field: %v", err)
			}
		})
	}
}
