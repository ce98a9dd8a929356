package httpapi

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/gate"
)

func TestDecode(t *testing.T) {
	two := 2
	tests := map[string]struct {
		reason, body string
		want         gate.GateRequest
	}{
		"all of ours":     {"each field in its place", `{"step_type":"tool_call","tokens_in":2,"lease_seconds":9,"tool_context":{"tool_name":"bank","tool_input":{"a":1}},"intent":{"b":2}}`, gate.GateRequest{StepType: "tool_call", TokensIn: &two, LeaseSeconds: 9, ToolContext: &gate.ToolContext{ToolName: "bank", ToolInput: json.RawMessage(`{"a":1}`)}, Intent: json.RawMessage(`{"b":2}`)}},
		"newer client":    {"what is not known is passed over", `{"step_type":"llm_call","news":{"a":[1,2,{"b":null}]}}`, gate.GateRequest{StepType: "llm_call"}},
		"null":            {"is left out", `{"step_type":"llm_call","step_input":null,"tokens_in":null,"tool_context":null,"step_name":null,"intent":null}`, gate.GateRequest{StepType: "llm_call"}},
		"numbers as they": {"come; what they mean is not ours to say", `{"step_input":{"n":1.50,"big":12345678901234567890}}`, gate.GateRequest{StepInput: json.RawMessage(`{"n":1.50,"big":12345678901234567890}`)}},
		"another case":    {"is another field", `{"STEP_TYPE":"x","step_type":"llm_call"}`, gate.GateRequest{StepType: "llm_call"}},
		"query only":      {"the field of the query is none of the body", `{"IncludePriorOutput":true,"-":true}`, gate.GateRequest{}},
		"space":           {"around it", " \n{}\t ", gate.GateRequest{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got gate.GateRequest
			if err := decode([]byte(test.body), &got, true); err != nil {
				t.Fatalf("%s: %v", test.reason, err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	deep := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	tests := map[string]struct{ reason, body, field, message string }{
		"empty":           {"nothing is asked", "", "", "invalid request body: it is empty; want a JSON object"},
		"space":           {"nothing is asked", " \n", "", "invalid request body: it is empty; want a JSON object"},
		"null":            {"no object", "null", "", "invalid request body: it is null; want a JSON object"},
		"array":           {"no object", "[]", "", "invalid request body: it is an array; want a JSON object"},
		"text":            {"no object", `"a"`, "", "invalid request body: it is a string; want a JSON object"},
		"no JSON":         {"says where", `{"a":x}`, "", "invalid request body: it is not JSON in UTF-8 at byte 5"},
		"cut":             {"says so", `{"a":1`, "", "invalid request body: it ends too early; want a JSON object"},
		"more":            {"which of them is meant?", `{} {}`, "", "invalid request body: more follows the JSON object"},
		"rubbish after":   {"likewise", `{}x`, "", "invalid request body: more follows the JSON object"},
		"no UTF-8":        {"two keys would become one", "{\"idempotency_key\":\"a\xff\"}", "", "invalid request body: it is not JSON in UTF-8 at byte 21"},
		"lone surrogate":  {"two keys would become one", `{"idempotency_key":"a\ud800"}`, "", "invalid request body: it is not JSON in UTF-8 at byte 21"},
		"twice":           {"which of them is meant?", `{"step_type":"a","step_type":"b"}`, "step_type", "step_type is there twice; want each field once"},
		"twice below":     {"likewise", `{"step_input":{"a":{"b":1,"b":2}}}`, "step_input.a.b", "step_input.a.b is there twice; want each field once"},
		"number for text": {"names it", `{"step_type":5}`, "step_type", "step_type is a number; want a string"},
		"object for text": {"names it", `{"idempotency_key":{}}`, "idempotency_key", "idempotency_key is an object; want a string"},
		"text for number": {"names it", `{"tokens_in":"5"}`, "tokens_in", "tokens_in is a string; want a whole number"},
		"fraction":        {"no number of tokens", `{"tokens_out":1.5}`, "tokens_out", "tokens_out is a number; want a whole number"},
		"huge":            {"no number of tokens", `{"tokens_out":99999999999999999999}`, "tokens_out", "tokens_out is a number; want a whole number"},
		"endless cost":    {"no double holds it", `{"cost_usd":1e999}`, "cost_usd", "cost_usd is a number out of all bounds; want one that a double holds"},
		"text for cost":   {"names it", `{"cost_usd":"1"}`, "cost_usd", "cost_usd is a string; want a number"},
		"list for tool":   {"names it", `{"tool_context":[]}`, "tool_context", "tool_context is an array; want an object"},
		"below the tool":  {"names it", `{"tool_context":{"tool_name":true}}`, "tool_context.tool_name", "tool_context.tool_name is a boolean; want a string"},
		"tool's input":    {"names it", `{"tool_context":{"tool_name":"a","tool_input":"x"}}`, "tool_context.tool_input", "tool_context.tool_input is a string; want an object"},
		"list for input":  {"names it", `{"step_input":[1]}`, "step_input", "step_input is an array; want an object"},
		"text for intent": {"names it", `{"intent":"x"}`, "intent", "intent is a string; want an object"},
		"fence as text":   {"names it", `{"lease_seconds":"60"}`, "lease_seconds", "lease_seconds is a string; want a whole number"},
		"NUL":             {"no ledger keeps it", `{"step_name":"a\u0000"}`, "step_name", "step_name holds a NUL; want text without one"},
		"NUL in the tool": {"likewise", `{"tool_context":{"tool_name":"a\u0000"}}`, "tool_context.tool_name", "tool_context.tool_name holds a NUL; want text without one"},
		"many":            {"nothing is built of it", `{"step_input":[` + strings.Repeat("1,", 80_000) + "%%", "", "invalid request body: it has more than 40000 names and values"},
		"deep":            {"is walked later", `{"step_input":{"a":` + deep + `}}`, "step_input.a.0.0", "step_input.a.0.0 is nested too deep; want at most 100 levels"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got gate.GateRequest
			err := decode([]byte(test.body), &got, true)
			var e *gate.Error
			if !errors.As(err, &e) {
				t.Fatalf("%s: %v", test.reason, err)
			}
			want := &gate.Error{Code: gate.BadRequest, Field: test.field, Message: test.message}
			if diff := cmp.Diff(want, e); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestOtherObjects(t *testing.T) {
	for body, into := range map[string]any{
		`{"metadata":[]}`: &gate.CreateRequest{},
		`{"output":"x"}`:  &gate.CompleteRequest{},
		`{"fence":"1"}`:   &gate.CompleteRequest{},
	} {
		var e *gate.Error
		if err := decode([]byte(body), into, false); !errors.As(err, &e) || !strings.Contains(body, e.Field) || e.Field == "" {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, body := range []string{"", " ", "null", "\n null \n", "{}"} { // encoders of clients make any of them of nothing
		if err := decode([]byte(body), &gate.CompleteRequest{}, false); err != nil {
			t.Errorf("%q where no body is needed: %v", body, err)
		}
	}
}

// Every input is accepted or refused with a short message; and what is accepted means the
// same to another reader of JSON.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"step_type":"tool_call","step_input":{"a":[1,{"b":null}]},"tokens_in":5,"cost_usd":0.5,"idempotency_key":"k","tool_context":{"tool_name":"t","tool_input":{}}}`,
		`{"step_input":null,"intent":{"x":"\u0000"}}`, `{"a":1}{`, `{"step_type":"\ud800"}`, `[[[[`, `{"step_type":1,"step_type":2}`, "{\"a\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got gate.GateRequest
		err := decode(data, &got, true)
		var e *gate.Error
		if err != nil {
			if !errors.As(err, &e) || e.Code != gate.BadRequest || len(e.Message) > 2000 || !utf8.ValidString(e.Message) {
				t.Fatalf("refused with %#v", err)
			}
			return
		}
		var other map[string]json.RawMessage
		if err := json.Unmarshal(data, &other); err != nil {
			t.Fatalf("taken, and is not JSON to others: %v", err)
		}
		for _, text := range []struct{ field, got string }{{"step_type", got.StepType}, {"idempotency_key", got.IdempotencyKey}} {
			var want string
			if raw, ok := other[text.field]; ok {
				if err := json.Unmarshal(raw, &want); err != nil {
					t.Fatal(err)
				}
			}
			if want != text.got {
				t.Errorf("%s is %q, and to others %q", text.field, text.got, want)
			}
		}
		for _, o := range objects(&got) {
			if len(*o.raw) > 0 && (*o.raw)[0] != '{' {
				t.Errorf("%s is %s", o.field, *o.raw)
			}
		}
	})
}
