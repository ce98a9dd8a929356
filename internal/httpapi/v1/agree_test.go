package v1

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// agreement compares responses with the document.
var agreement = struct {
	sync.Mutex
	schemas map[string]*jsonschema.Schema // by operation, status and way
	seen    map[string]bool               // "GET /v1/writes 400"
}{schemas: map[string]*jsonschema.Schema{}, seen: map[string]bool{}}

// The whole suite produces every documented status: one that is documented and never
// happens is a mistake as well.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && whole() {
		for _, missing := range unseen() {
			fmt.Println("documented, and no test was ever answered so:", missing)
			code = 1
		}
	}
	os.Exit(code)
}

// whole reports whether all tests were run.
func whole() bool {
	for _, name := range []string{"test.run", "test.skip", "test.fuzz", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return true
}

func unseen() []string {
	var missing []string
	for _, r := range routes() {
		for status := range r.statuses() {
			if name := fmt.Sprintf("%s %s %d", r.method, r.pattern, status); !agreement.seen[name] {
				missing = append(missing, name)
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// documentOf reads the served document.
var documentOf = sync.OnceValue(func() map[string]any {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document("test")))
	if err != nil {
		panic(err)
	}
	m := doc.(map[string]any)
	shut(m["components"].(map[string]any)["schemas"])
	return m
})

// shut makes every object refuse members that it does not name: the document allows more, but
// today's responses must be in it.
func shut(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["properties"]; ok && v["type"] == "object" && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, each := range v {
			shut(each)
		}
	case []any:
		for _, each := range v {
			shut(each)
		}
	}
}

// compiled is the schema at a place in the document.
func compiled(t *testing.T, at ...string) *jsonschema.Schema {
	t.Helper()
	for i, part := range at {
		at[i] = strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
	}
	pointer := "#/" + strings.Join(at, "/")
	agreement.Lock()
	defer agreement.Unlock()
	if s := agreement.schemas[pointer]; s != nil {
		return s
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("readback:openapi", documentOf()); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("readback:openapi" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(pointer))
	if err != nil {
		t.Fatalf("%s: %v", pointer, err)
	}
	agreement.schemas[pointer] = s
	return s
}

// agrees fails if a response does not match the document. Unknown routes are not in it.
func agrees(t *testing.T, r *http.Request, a answered) {
	t.Helper()
	method, pattern, ok := strings.Cut(r.Pattern, " ")
	if !ok || r.Method == http.MethodHead {
		return
	}
	operation, ok := documentOf()["paths"].(map[string]any)[pattern].(map[string]any)[strings.ToLower(method)].(map[string]any)
	if !ok {
		t.Fatalf("%s is not in the document", r.Pattern)
	}
	status := strconv.Itoa(a.Status)
	response, ok := operation["responses"].(map[string]any)[status].(map[string]any)
	if !ok {
		t.Fatalf("%s answers %s, which is not in the document: %s", r.Pattern, status, a.Body)
	}
	agreement.Lock()
	agreement.seen[r.Pattern+" "+status] = true
	agreement.Unlock()
	kind := a.Header.Get("Content-Type")
	if _, ok := response["content"].(map[string]any)[kind]; !ok {
		t.Fatalf("%s answers %s with %q; the document has %v", r.Pattern, status, kind, slices.Collect(maps.Keys(response["content"].(map[string]any))))
	}
	if kind == streamType {
		return // its events are checked by their readers
	}
	validate(t, compiled(t, "paths", pattern, strings.ToLower(method), "responses", status, "content", kind, "schema"), a.Body)
}

func validate(t *testing.T, s *jsonschema.Schema, text []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if err := s.Validate(v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// validJSON is one for reading in failures.
func validJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
