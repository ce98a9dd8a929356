package jsonplace_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/jsonplace"
	"github.com/readback-go/readback/internal/yamlfile"
)

func at(path string) yamlfile.Text {
	return yamlfile.Text{Value: path, Place: yamlfile.Place{Line: 3, Field: "record.ref"}}
}

func TestValue(t *testing.T) {
	for name, tt := range map[string]struct {
		reason, path, doc string
		want              any
		there             bool
	}{
		"there":   {"the plain case", "$.a.b", `{"a":{"b":"x"}}`, "x", true},
		"null":    {"null is a value", "$.a", `{"a":null}`, nil, true},
		"nothing": {"an answer without it", "$.a", `{}`, nil, false},
		"several": {"nobody knows which one is meant", "$.*", `{"a":1,"b":2}`, nil, false},
		"filter":  {"the library panics at it", `$[?match(@.a, "x")]`, `[{"b":1}]`, nil, false},
		"no path": {"a member that the file does not have", "", `{}`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var r yamlfile.Reader
			var doc any
			if err := json.Unmarshal([]byte(tt.doc), &doc); err != nil {
				t.Fatal(err)
			}
			got, there := jsonplace.New(&r, at(tt.path)).Value(doc)
			if diff := cmp.Diff(tt.want, got); diff != "" || there != tt.there || len(r.Problems) > 0 {
				t.Errorf("%s: there %v, problems %v, value (-want +got):\n%s", tt.reason, there, r.Problems, diff)
			}
		})
	}
}

func TestAllNamesThePathThatCannotBeAsked(t *testing.T) {
	var r yamlfile.Reader
	p := jsonplace.New(&r, at(`$[?match(@.a, "x")]`))
	found, err := p.All([]any{map[string]any{"b": "x"}})
	if !errors.Is(err, jsonplace.ErrShape) || !strings.HasPrefix(err.Error(), p.Text()) || found != nil {
		t.Errorf("found %v, error %v", found, err)
	}
}

func TestSingular(t *testing.T) {
	for name, tt := range map[string]struct{ reason, path, problem string }{
		"one":      {"what it is for", "$.a[0]", ""},
		"several":  {"a ref is one value", "$.a[*]", "may select several values"},
		"no path":  {"a slip", "a.b", "is no JSONPath"},
		"not said": {"an optional member", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var r yamlfile.Reader
			p := jsonplace.Singular(&r, at(tt.path))
			got := ""
			if len(r.Problems) > 0 {
				got = r.Problems[0].String()
			}
			if tt.problem == "" && got != "" || !strings.Contains(got, tt.problem) || (p != nil) != (tt.problem == "" && tt.path != "") {
				t.Errorf("%s: place %v, problem %q, want %q", tt.reason, p, got, tt.problem)
			}
		})
	}
}
