package intent

import (
	"bytes"
	stdjson "encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "write schema.json and the expected texts of bad intents anew")

// The published schema is made from the struct, its tags and its comments, so
// that none of them can change alone.
func TestSchemaIsMadeFromTheCode(t *testing.T) {
	built, err := stdjson.MarshalIndent(buildSchema(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	built = append(built, '\n')
	if *update {
		if err := os.WriteFile("schema.json", built, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	onDisk, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(built), string(onDisk)); diff != "" {
		t.Errorf("schema.json is not what the code says; run go test ./intent -run Schema -update (-code +file):\n%s", diff)
	}
	if !bytes.Equal(onDisk, Schema()) {
		t.Error("the schema in the binary is not schema.json")
	}
}

func TestSchemaIsACopy(t *testing.T) {
	Schema()[0] = 'x'
	if Schema()[0] != '{' {
		t.Error("a caller changed the published schema")
	}
}

// resolvedSchema returns the published schema, ready to check instances.
func resolvedSchema(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := stdjson.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// schemaAccepts checks as a tool with the schema and an ordinary JSON library does.
func schemaAccepts(resolved *jsonschema.Resolved, data []byte) error {
	var instance any
	if err := stdjson.NewDecoder(bytes.NewReader(data)).Decode(&instance); err != nil {
		return err
	}
	return resolved.Validate(instance)
}

func buildSchema(t *testing.T) *jsonschema.Schema {
	b := schemaBuilder{docs: fieldDocs(t)}
	root := b.object(reflect.TypeFor[WriteIntent](), "compensates")
	root.Schema = "https://json-schema.org/draft/2020-12/schema"
	root.ID = "https://github.com/readback-go/readback/intent/schema.json"
	root.Title = "WriteIntent"
	root.Description = "One declared write: where it comes from, where it goes, how the record is found, and what must be seen afterwards. Leave a member out for its default."
	root.AllOf = []*jsonschema.Schema{
		{
			If:   where("write", Delete),
			Then: with("expect", none(), "payload", none(), "absent", &jsonschema.Schema{MaxItems: jsonschema.Ptr(0)}),
			Else: &jsonschema.Schema{Required: []string{"expect"}, Properties: map[string]*jsonschema.Schema{"expect": {MinProperties: jsonschema.Ptr(1)}}},
		},
		{If: where("write", Create), Then: with("require", none())},
		{If: where("on_mismatch", MismatchCompensate), Then: where("reversibility", Compensable)},
		{If: where("on_mismatch", MismatchRepair), Then: &jsonschema.Schema{Not: where("write", Delete)}},
	}
	root.Defs = map[string]*jsonschema.Schema{
		"fields": {Type: "object", PropertyNames: ref("member"), AdditionalProperties: ref("value")},
		"member": {Type: "string", MinLength: jsonschema.Ptr(1), MaxLength: jsonschema.Ptr(MaxMemberName), Pattern: `^[^\x00-\x1f\x7f-\x9f]+$`},
		"value": {
			Types: []string{"null", "boolean", "number", "string", "array", "object"},
			Items: ref("value"), PropertyNames: ref("member"), AdditionalProperties: ref("value"),
		},
		"path": {Type: "string", MaxLength: jsonschema.Ptr(MaxPointer), Pattern: pointerPattern},
		"rule": b.rule(),
	}
	return root
}

func ref(def string) *jsonschema.Schema { return &jsonschema.Schema{Ref: "#/$defs/" + def} }

func none() *jsonschema.Schema { return &jsonschema.Schema{MaxProperties: jsonschema.Ptr(0)} }

// where: the member is there and has the value.
func where[S ~string](name string, value S) *jsonschema.Schema {
	return &jsonschema.Schema{
		Required:   []string{name},
		Properties: map[string]*jsonschema.Schema{name: {Const: jsonschema.Ptr(any(string(value)))}},
	}
}

// with takes alternating names and schemas.
func with(pairs ...any) *jsonschema.Schema {
	s := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{}}
	for i := 0; i < len(pairs); i += 2 {
		s.Properties[pairs[i].(string)] = pairs[i+1].(*jsonschema.Schema)
	}
	return s
}

type schemaBuilder struct{ docs map[string]string }

func (b schemaBuilder) object(t reflect.Type, without string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for field := range t.Fields() {
		name := jsonName(field)
		if name == without {
			continue
		}
		p := b.property(field)
		p.Description = b.docs[t.Name()+"."+field.Name]
		s.Properties[name] = p
		s.PropertyOrder = append(s.PropertyOrder, name)
		if strings.HasPrefix(field.Tag.Get("validate"), "required") {
			s.Required = append(s.Required, name)
		}
	}
	return s
}

func (b schemaBuilder) rule() *jsonschema.Schema {
	s := b.object(reflect.TypeFor[Rule](), "")
	for _, p := range []struct {
		name, pattern string
		owner         RuleName
	}{{"tolerance", tolerancePattern, RuleNumeric}, {"precision", precisionPattern, RuleTime}, {"zone", zonePattern, RuleTime}} {
		s.Properties[p.name].Pattern = p.pattern
		s.Properties[p.name].MaxLength = jsonschema.Ptr(MaxRuleText)
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: &jsonschema.Schema{Required: []string{p.name}}, Then: where("rule", p.owner)})
	}
	return s
}

func (b schemaBuilder) property(field reflect.StructField) *jsonschema.Schema {
	switch field.Type {
	case reflect.TypeFor[Fields]():
		if field.Name == "Key" {
			return &jsonschema.Schema{
				Type: "object", MinProperties: jsonschema.Ptr(1), MaxProperties: jsonschema.Ptr(MaxKeyMembers), PropertyNames: ref("member"),
				AdditionalProperties: &jsonschema.Schema{Types: []string{"string", "number", "boolean"}, MinLength: jsonschema.Ptr(1)},
			}
		}
		return ref("fields")
	case reflect.TypeFor[map[string]Comparison]():
		return &jsonschema.Schema{
			Type: "object", MaxProperties: jsonschema.Ptr(MaxPaths), PropertyNames: ref("path"),
			AdditionalProperties: &jsonschema.Schema{Type: "array", MaxItems: jsonschema.Ptr(MaxRules), Items: ref("rule")},
		}
	case reflect.TypeFor[map[string]string]():
		return &jsonschema.Schema{
			Type: "object", MaxProperties: jsonschema.Ptr(MaxContext), PropertyNames: ref("member"),
			AdditionalProperties: &jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(1), MaxLength: jsonschema.Ptr(MaxContextValue), Pattern: `^[^\x00-\x1f\x7f-\x9f]+$`},
		}
	case reflect.TypeFor[[]string]():
		return &jsonschema.Schema{Type: "array", MaxItems: jsonschema.Ptr(MaxPaths), UniqueItems: true, Items: ref("path")}
	case reflect.TypeFor[time.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time", Pattern: timePattern}
	}
	s := &jsonschema.Schema{Type: "string"}
	if field.Type.Kind() == reflect.Int {
		s.Type = "integer"
	}
	for rule := range strings.SplitSeq(field.Tag.Get("validate"), ",") {
		constrain(s, rule)
	}
	if field.Name == "Count" {
		s.Minimum = jsonschema.Ptr(1.0) // 0 is Go's way of leaving it out
	}
	return s
}

// constrain adds one rule of a validate tag.
func constrain(s *jsonschema.Schema, rule string) {
	name, param, _ := strings.Cut(rule, "=")
	number, _ := strconv.Atoi(param)
	switch {
	case name == "name" || name == "printable":
		s.Pattern = namePattern
	case name == "oneof":
		for value := range strings.FieldsSeq(param) {
			s.Enum = append(s.Enum, value)
		}
	case name == "max" && s.Type == "integer":
		s.Maximum = jsonschema.Ptr(float64(number))
	case name == "min" && s.Type == "integer":
		s.Minimum = jsonschema.Ptr(float64(number))
	}
}

// fieldDocs returns the comments of struct fields, by "Type.Field".
func fieldDocs(t *testing.T) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "intent.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				for _, name := range field.Names {
					docs[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
				}
			}
		}
		return false
	})
	return docs
}

// A field without a comment would be published without a description.
func TestSchemaDescribesEveryMember(t *testing.T) {
	var s jsonschema.Schema
	if err := stdjson.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Properties) != reflect.TypeFor[WriteIntent]().NumField()-1 {
		t.Errorf("%d properties; want every field but compensates", len(s.Properties))
	}
	for name, p := range s.Properties {
		if p.Description == "" {
			t.Errorf("%s has no description", name)
		}
	}
}
