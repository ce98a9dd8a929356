package mcpapi_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/readback-go/readback/internal/mcpapi"
)

// compile checks a schema against the meta-schema of draft 2020-12.
func compile(t *testing.T, schema []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatalf("no JSON: %v", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("mem://schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem://schema.json")
	if err != nil {
		t.Fatalf("no schema of draft 2020-12: %v", err)
	}
	return s
}

func conforms(t *testing.T, schema, value []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		t.Fatalf("no JSON: %v\n%s", err, value)
	}
	if err := compile(t, schema).Validate(v); err != nil {
		t.Errorf("the answer does not fit its schema: %v\n%s", err, value)
	}
}

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestSchemasAreSchemas(t *testing.T) {
	compile(t, mcpapi.OutputSchema())
	for _, one := range tools() {
		compile(t, one.InputSchema())
	}
}
