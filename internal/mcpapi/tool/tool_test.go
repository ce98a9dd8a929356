package tool_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/mcpapi/tool"
)

// pay is a tool with every kind of argument.
func pay() tool.Tool {
	return tool.Tool{
		Name: "pay_invoice", Description: "Pays an invoice.", Destination: "bank", Kind: "payment", Write: intent.Create,
		Arguments: []tool.Argument{
			{Name: "invoice", Type: tool.String, Required: true, Description: "d", To: "key/invoice_number"},
			{Name: "line", Type: tool.Integer, Required: true, Description: "d"},
			{Name: "amount", Type: tool.Number, Required: true, Description: "d", To: "expect/amount/value"},
			{Name: "currency", Type: tool.String, Enum: []string{"EUR", "USD"}, Description: "d", To: "expect/amount/currency"},
			{Name: "express", Type: tool.Boolean, Description: "d"},
			{Name: "labels", Type: tool.Array, Description: "d", To: "payload/labels"},
			{Name: "steps", Type: tool.Array, Items: tool.Integer, Description: "d", To: "payload/steps"},
			{Name: "extra", Type: tool.Object, Description: "d", To: "payload/extra"},
			{Name: "slash", Type: tool.String, Description: "d", To: "payload/a~1b"},
		},
		Key: []string{"invoice", "line"}, Operation: []string{"invoice", "line"},
		Fixed: tool.Fixed{Key: intent.Fields{"bank": "main"}, Expect: intent.Fields{"amount": map[string]any{"kind": "gross"}}},
		Risk:  intent.RiskLog, Reversibility: intent.Compensable,
	}
}

func TestTheToolIsRight(t *testing.T) {
	if err := pay().Check(); err != nil {
		t.Fatal(err)
	}
}

func TestIntentOfACall(t *testing.T) {
	got, err := pay().Intent([]byte(`{"invoice":"7721","line":1.0,"amount":12.50,"currency":"EUR","express":true,"labels":["a","b"],"steps":[1,2],"extra":{"x":{"y":null}},"slash":"s"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := intent.WriteIntent{
		Tool: "pay_invoice", Destination: "bank", Kind: "payment", Write: intent.Create,
		Key:     intent.Fields{"bank": "main", "invoice_number": "7721", "line": json.Number("1.0")},
		Expect:  intent.Fields{"amount": map[string]any{"kind": "gross", "value": json.Number("12.50"), "currency": "EUR"}, "express": true},
		Payload: intent.Fields{"labels": []any{"a", "b"}, "steps": []any{json.Number("1"), json.Number("2")}, "extra": map[string]any{"x": map[string]any{"y": nil}}, "a/b": "s"},
		Risk:    intent.RiskLog, Reversibility: intent.Compensable, IdempotencyKey: `{"invoice":"7721","line":1}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestOneCallDoesNotChangeTheNext: all calls share the fixed part.
func TestOneCallDoesNotChangeTheNext(t *testing.T) {
	p := pay()
	for range 2 {
		w, err := p.Intent([]byte(`{"invoice":"7721","line":1,"amount":1}`))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(intent.Fields{"amount": map[string]any{"kind": "gross", "value": json.Number("1")}}, w.Expect); d != "" {
			t.Error(d)
		}
		if _, err := p.Intent([]byte(`{"invoice":"7721","line":1,"amount":1,"currency":"USD"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(pay(), p); d != "" {
		t.Errorf("the tool has changed: %s", d)
	}
}

// TestTheReason: a reviewer sees why a model asks; the write is the same without it.
func TestTheReason(t *testing.T) {
	p := pay()
	p.Arguments = append(p.Arguments, tool.Argument{Name: "why", Type: tool.String, Description: "Why it is wanted.", To: "context/reason"})
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	with, err := p.Intent([]byte(`{"invoice":"7721","line":1,"amount":1,"why":"The goods arrived."}`))
	if err != nil || with.Context["reason"] != "The goods arrived." || with.Expect["why"] != nil || with.Payload["why"] != nil {
		t.Errorf("%+v, %v; want the reason as context alone", with, err)
	}
	without, err := p.Intent([]byte(`{"invoice":"7721","line":1,"amount":1}`))
	if err != nil {
		t.Fatal(err)
	}
	with.Context = nil
	if d := cmp.Diff(without, with); d != "" {
		t.Errorf("the reason changes more than the context: %s", d)
	}
	var bad *tool.ArgumentsError
	_, err = p.Intent([]byte(`{"invoice":"7721","line":1,"amount":1,"why":"` + strings.Repeat("x", 257) + `"}`))
	if !errors.As(err, &bad) || bad.Problems[0].Argument != "why" {
		t.Errorf("%v; want the argument named", err)
	}
	p.Arguments[len(p.Arguments)-1].Type = tool.Integer
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "want type string") {
		t.Errorf("%v; want type string", err)
	}
}

// TestTheOperation: the same arguments in other spellings are one operation, others
// are another.
func TestTheOperation(t *testing.T) {
	key := func(arguments string) string {
		t.Helper()
		w, err := pay().Intent([]byte(arguments))
		if err != nil {
			t.Fatal(err)
		}
		return w.IdempotencyKey
	}
	base := key(`{"invoice":"7721","line":1,"amount":1}`)
	for name, c := range map[string]struct {
		reason, arguments string
		same              bool
	}{
		"another amount":  {"it is no part of the operation", `{"invoice":"7721","line":1,"amount":2}`, true},
		"another order":   {"members have none", `{"line":1,"amount":1,"invoice":"7721"}`, true},
		"1.0":             {"it is 1", `{"invoice":"7721","line":1.0,"amount":1}`, true},
		"1e0":             {"it is 1", `{"invoice":"7721","line":1e0,"amount":1}`, true},
		"escaped":         {"the same text", `{"invoice":"\u0037721","line":1,"amount":1}`, true},
		"another line":    {"another operation", `{"invoice":"7721","line":2,"amount":1}`, false},
		"another invoice": {"another operation", `{"invoice":"772","line":1,"amount":1}`, false},
		"quotes in it":    {"no text equals two arguments", `{"invoice":"7721\",\"line\":1}","line":1,"amount":1}`, false},
		"long":            {"a digest", `{"invoice":"` + strings.Repeat("7", 300) + `","line":1,"amount":1}`, false},
		"not ASCII":       {"a digest", `{"invoice":"Rechnung Nº 7","line":1,"amount":1}`, false},
	} {
		got := key(c.arguments)
		if (got == base) != c.same {
			t.Errorf("%s: %s: %q and %q", name, c.reason, got, base)
		}
		if (name == "long" || name == "not ASCII") != strings.HasPrefix(got, "sha256:") {
			t.Errorf("%s: the key is %q", name, got)
		}
	}
}

func TestRefusedArguments(t *testing.T) {
	for name, c := range map[string]struct{ reason, arguments, argument, problem string }{
		"missing key":    {"required", `{"line":1,"amount":1}`, "invoice", "is missing"},
		"null":           {"null is not left out", `{"invoice":null,"line":1,"amount":1}`, "invoice", "is null"},
		"fraction":       {"whole", `{"invoice":"7","line":1.5,"amount":1}`, "line", "is the number 1.5"},
		"huge exponent":  {"no work for a hostile number", `{"invoice":"7","line":1e999999999,"amount":1}`, "line", "is the number 1e999999999"},
		"beyond double":  {"two numbers would become one", `{"invoice":"7","line":9007199254740993,"amount":1}`, "line", "9007199254740993"},
		"no such choice": {"an enumeration", `{"invoice":"7","line":1,"amount":1,"currency":"GBP"}`, "currency", `is "GBP"`},
		"element":        {"of the list", `{"invoice":"7","line":1,"amount":1,"labels":["a",2]}`, "labels", "has the number 2 at place 1"},
		"empty key":      {"nothing to ask by", `{"invoice":"","line":1,"amount":1}`, "invoice", "is empty"},
		"blank":          {"another spelling", `{"invoice":"7 ","line":1,"amount":1}`, "invoice", "has blanks at its ends"},
		"no break space": {"a blank, too", `{"invoice":"\u00a07","line":1,"amount":1}`, "invoice", "has blanks at its ends"},
		"zero width":     {"two that look alike", `{"invoice":"7\u200b7","line":1,"amount":1}`, "invoice", "has characters that cannot be seen"},
		"another blank":  {"it looks like a blank", `{"invoice":"7\u00a07","line":1,"amount":1}`, "invoice", "has characters that cannot be seen"},
		"two blanks":     {"they look like one", `{"invoice":"7  7","line":1,"amount":1}`, "invoice", "has characters that cannot be seen, or blanks side by side"},
		"filler":         {"a letter that is not drawn", `{"invoice":"7\u31647","line":1,"amount":1}`, "invoice", "has characters that cannot be seen"},
		"joiner":         {"a mark that is not drawn", `{"invoice":"7\u034f7","line":1,"amount":1}`, "invoice", "has characters that cannot be seen"},
		"variant":        {"the same sign in another shape", `{"invoice":"7\ufe0f","line":1,"amount":1}`, "invoice", "has characters that cannot be seen"},
		"braille":        {"a pattern without dots", `{"invoice":"7\u28007","line":1,"amount":1}`, "invoice", "has characters that cannot be seen"},
		"control":        {"likewise", `{"invoice":"7\u00007","line":1,"amount":1}`, "invoice", "has characters that cannot be seen"},
		"decomposed":     {"likewise", `{"invoice":"Mu\u0308ller","line":1,"amount":1}`, "invoice", "has letters in a decomposed form"},
		"long key":       {"a key is no text", `{"invoice":"` + strings.Repeat("7", 513) + `","line":1,"amount":1}`, "invoice", "has 513 characters"},
		"unknown":        {"strict", `{"invoice":"7","line":1,"amount":1,"Amount":1}`, "Amount", "is no argument of this tool"},
		"twice":          {"which one?", `{"invoice":"7","line":1,"amount":1,"amount":2}`, "", "the arguments cannot be read"},
		"twice below":    {"which one?", `{"invoice":"7","line":1,"amount":1,"extra":{"a":1,"a":2}}`, "", "the arguments cannot be read"},
		"deep":           {"bounded", `{"invoice":"7","line":1,"amount":1,"extra":` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40) + `}`, "extra", "nested"},
		"a list":         {"by name", `[]`, "", "the arguments are no JSON object"},
		"null itself":    {"likewise", `null`, "", "the arguments are no JSON object"},
		"more after":     {"one object", `{"invoice":"7","line":1,"amount":1} {}`, "", "the arguments cannot be read"},
		"large":          {"bounded", `{"invoice":"7","line":1,"amount":1,"slash":"` + strings.Repeat("x", 2<<20) + `"}`, "", "the arguments have"},
		"many":           {"nothing is built of it", `{"invoice":[` + strings.Repeat("1,", 80_000) + "%%", "", "the arguments have too many values"},
		"long text":      {"bounded", `{"invoice":"7","line":1,"amount":1,"slash":"` + strings.Repeat("x", 100_001) + `"}`, "slash", "has 100001 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pay().Intent([]byte(c.arguments))
			var bad *tool.ArgumentsError
			if !errors.As(err, &bad) || !errors.Is(err, tool.ErrArguments) {
				t.Fatalf("%s: error %v", c.reason, err)
			}
			found := slices.ContainsFunc(bad.Problems, func(p tool.Problem) bool {
				return p.Argument == c.argument && strings.Contains(p.Problem, c.problem) && p.Want != ""
			})
			if !found {
				t.Errorf("%s: %+v", c.reason, bad.Problems)
			}
			if n := len(err.Error()); n > 5000 {
				t.Errorf("the error has %d bytes", n)
			}
		})
	}
}

func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(pay().InputSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("mem://tool.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem://tool.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// FuzzIntent: for all arguments, an intent of them is valid, has none of its names from
// them, and the schema that a model was shown accepts the arguments.
func FuzzIntent(f *testing.F) {
	for _, seed := range []string{
		`{"invoice":"7721","line":1,"amount":12.50,"currency":"EUR","express":true,"labels":["a"],"steps":[1],"extra":{},"slash":"s"}`,
		`{"invoice":"7","line":1e2,"amount":-0}`, `{"invoice":"7","line":-1,"amount":1E400}`, `{"invoice":"\ud800","line":1,"amount":1}`, `[]`, `{}`, ``, `null`,
		`{"invoice":"7","line":1,"amount":1,"tenant":"x"}`, `{"invoice":"7","line":1,"amount":1,"extra":{"tenant":"x","":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	schema := compiled(f)
	p := pay()
	f.Fuzz(func(t *testing.T, arguments []byte) {
		w, err := p.Intent(arguments)
		if err != nil {
			if !errors.Is(err, tool.ErrArguments) {
				t.Fatalf("an error that names no argument: %v", err)
			}
			return
		}
		if w.Tenant != "" || w.Workflow != "" || w.Step != "" || w.Call != 0 || w.Compensates != "" || w.Risk != p.Risk || w.Destination != p.Destination || w.Tool != p.Name {
			t.Fatalf("arguments have changed what they may not: %+v", w)
		}
		if w.Key["bank"] != "main" || len(w.Key) != 3 || w.IdempotencyKey == "" {
			t.Fatalf("arguments have changed what is fixed: %+v", w)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Fatalf("taken, and not by the schema: %v", err)
		}
		w.Tenant, w.Workflow = "t", "w"
		text, err := w.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := intent.Decode(text); err != nil {
			t.Fatalf("no intent: %v", err)
		}
	})
}
