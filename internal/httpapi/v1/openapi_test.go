package v1

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/readback-go/readback/intent"
)

// The document is one that a reader of OpenAPI takes, as far as it knows 3.1.
func TestDocumentIsOpenAPI(t *testing.T) {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(document("test"))
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Servers) != 1 || doc.Servers[0].URL != "/" || doc.Servers[0].Description == "" {
		t.Errorf("servers: %+v", doc.Servers)
	}
	for name, s := range doc.Components.Schemas {
		if s.Value.Description == "" {
			t.Errorf("the schema %s has no description", name)
		}
		for member, p := range s.Value.Properties {
			if clients := []string{"Outcome", "Write", "Writes", "StreamEvent", "Choice", "Problem", "Refusal", "Result", "DecisionRequest", intentName}; slices.Contains(clients, name) && p.Ref == "" && p.Value.Description == "" {
				t.Errorf("the member %s of %s has no description: generated clients have it as their documentation", member, name)
			}
		}
	}
	seen := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.OperationID == "" || seen[op.OperationID] || op.Summary == "" || op.Description == "" || op.Responses.Len() == 0 {
				t.Errorf("%s %s: operation %q", method, path, op.OperationID)
			}
			seen[op.OperationID] = true
			for _, p := range op.Parameters {
				if p.Value.Description == "" {
					t.Errorf("%s %s: the parameter %q has no description", method, path, p.Value.Name)
				}
				if p.Value.In == "path" && !strings.Contains(path, "{"+p.Value.Name+"}") {
					t.Errorf("%s %s: parameter %q", method, path, p.Value.Name)
				}
			}
			for status, r := range op.Responses.Map() {
				if r.Value.Description == nil || *r.Value.Description == "" {
					t.Errorf("%s %s %s: no description", method, path, status)
				}
			}
		}
	}
}

// Every schema in it is one (draft 2020-12), and every reference leads somewhere.
func TestSchemasAreSchemas(t *testing.T) {
	meta, err := jsonschema.NewCompiler().Compile("https://json-schema.org/draft/2020-12/schema")
	if err != nil {
		t.Fatal(err)
	}
	all := documentOf()["components"].(map[string]any)["schemas"].(map[string]any)
	if len(all) < len(components)+len(leftOut) {
		t.Fatalf("only %d schemas", len(all))
	}
	for name, s := range all {
		if err := meta.Validate(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		compiled(t, "components", "schemas", name)
	}
	used := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				name := strings.TrimPrefix(ref, componentBase)
				used[name] = true
				if all[name] == nil {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			for _, each := range v {
				walk(each)
			}
		case []any:
			for _, each := range v {
				walk(each)
			}
		}
	}
	walk(documentOf())
	for name := range all {
		if !used[name] && name != "StreamEvent" && !strings.HasPrefix(name, intentName+".") {
			t.Errorf("%s is used nowhere", name)
		}
	}
}

// Members of exported types must be documented, and hidden ones not: a type that got a member of
// another package without a tag would be a surprise.
func TestNamesInTheDocumentAreLowerCase(t *testing.T) {
	var walk func(at string, v any)
	walk = func(at string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			return
		}
		if props, ok := m["properties"].(map[string]any); ok {
			for name := range props {
				if name != strings.ToLower(name) && at+"/"+name != "/Envelope/payloadType" { // which DSSE calls so
					t.Errorf("%s has the member %q", at, name)
				}
			}
		}
		for name, each := range m {
			walk(at+"/"+name, each)
		}
	}
	walk("", documentOf()["components"].(map[string]any)["schemas"])
}

// The API accepts exactly the requests that the document describes: a missing or an extra
// member is refused by both.
func TestRequestsAreAsDocumented(t *testing.T) {
	take := map[string]func([]byte) error{
		"DecisionRequest": func(b []byte) error { return decode(b, new(DecisionRequest)) },
		"ReasonRequest":   func(b []byte) error { return decode(b, new(ReasonRequest)) },
		"StopRequest":     func(b []byte) error { return decode(b, new(StopRequest)) },
		"SagaPlan":        func(b []byte) error { _, err := decodePlan(b, "acme"); return err },
		"WriteIntent":     func(b []byte) error { w, err := decodeIntent(b, "acme", "k-1"); return cmp.Or(err, w.Validate()) },
		"BatchRequest": func(b []byte) error {
			items, err := batchItems(b)
			for _, item := range items {
				w, _, bad := decodeItem(item, "acme")
				err = errors.Join(err, bad, w.Validate())
			}
			return err
		},
	}
	good := map[string]string{
		"DecisionRequest": `{"word":"retry","reason":"x","force":true,"digest":"d"}`,
		"ReasonRequest":   `{"reason":"x"}`,
		"StopRequest":     `{"destination":"orders","tool":"charge","reason":"x"}`,
		"SagaPlan":        strings.Replace(plan("trip-1", "A-1"), `"name"`, `"after":[],"revert":"hard","grace":"5m","undo":`+asJSON(intent.WriteIntent{Write: "delete"})+`,"name"`, 1),
		"WriteIntent":     asJSON(order("A-1", unnamed)),
		"BatchRequest":    batch(keyed("A-1", "k-1"), asJSON(order("A-2"))),
	}
	good["SagaPlan"] = strings.Replace(plan("trip-1", "A-1"), `"name"`, `"after":[],"revert":"hard","grace":"5m","undo":{"write":"delete"},"name"`, 1)
	for name, each := range take {
		t.Run(name, func(t *testing.T) {
			s := compiled(t, "components", "schemas", name)
			verdicts := func(text string) (api, document error) {
				v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				return each([]byte(text)), s.Validate(v)
			}
			if api, doc := verdicts(good[name]); api != nil || doc != nil {
				t.Fatalf("the API says %v, the document %v", api, doc)
			}
			var m map[string]any
			if err := json.Unmarshal([]byte(good[name]), &m); err != nil {
				t.Fatal(err)
			}
			for member := range m {
				for what, value := range map[string]any{"null": nil, "a number": 7, "an array": []any{1}} {
					other := maps.Clone(m)
					other[member] = value
					if api, doc := verdicts(text(t, other)); api == nil || doc == nil {
						t.Errorf("%s is %s: the API says %v, the document %v", member, what, api, doc)
					}
				}
			}
			m["another"] = true
			if api, doc := verdicts(text(t, m)); api == nil || doc == nil {
				t.Errorf("another member: the API says %v, the document %v", api, doc)
			}
		})
	}
	if names := slices.Sorted(maps.Keys(take)); len(names) != len(requests)+1 {
		t.Errorf("requests %v", names)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A plan in the document has the members that are read, and no others.
func TestPlanIsAsItIsRead(t *testing.T) {
	p, err := decodePlan([]byte(plan("trip-1", "A-1")), "acme")
	if err != nil {
		t.Fatal(err)
	}
	p.CorrelationID, p.Steps[0].After, p.Steps[0].Grace, p.Steps[0].Revert = "c", []string{"one"}, 1, "hard"
	undo := p.Steps[0].Intent
	p.Steps[0].Undo = &undo
	written, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Top   map[string]json.RawMessage
		Steps []map[string]json.RawMessage `json:"steps"`
	}
	if err := errors.Join(json.Unmarshal(written, &got.Top), json.Unmarshal(written, &got)); err != nil {
		t.Fatal(err)
	}
	for of, have := range map[reflect.Type]map[string]json.RawMessage{of[planDocument](): got.Top, of[planStepPart](): got.Steps[0]} {
		var want []string
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			want = append(want, name)
		}
		slices.Sort(want)
		if !slices.Equal(want, slices.Sorted(maps.Keys(have))) {
			t.Errorf("%v has %v, and %v is read", of, want, slices.Sorted(maps.Keys(have)))
		}
	}
}

// The document does not change from one start to the next.
func TestDocumentIsStable(t *testing.T) {
	if !bytes.Equal(document("1"), document("1")) {
		t.Error("it is another one each time")
	}
	if n := len(document("1")); n > 200<<10 {
		t.Errorf("it has %d bytes", n)
	}
}
