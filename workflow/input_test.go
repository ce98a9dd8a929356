package workflow_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/workflow"
)

func ptr[T any](v T) *T { return &v }

func TestBadGates(t *testing.T) {
	long := strings.Repeat("ä", 256)
	big := json.RawMessage(`{"x":"` + strings.Repeat("y", 300<<10) + `"}`)
	tool := func(c workflow.ToolContext) asking { return asking{StepType: "tool_call", ToolContext: &c} }
	for name, tt := range map[string]struct {
		step  string
		ask   asking
		code  workflow.Code
		field string
	}{
		"no type":              {"a", asking{}, workflow.BadRequest, "step_type"},
		"another type":         {"a", asking{StepType: "magic"}, workflow.BadRequest, "step_type"},
		"another policy":       {"a", asking{StepType: "tool_call", RetryPolicy: "often"}, workflow.BadRequest, "retry_policy"},
		"long key":             {"a", asking{StepType: "tool_call", IdempotencyKey: long}, workflow.BadRequest, "idempotency_key"},
		"long name":            {"a", asking{StepType: "tool_call", StepName: long}, workflow.BadRequest, "step_name"},
		"no text":              {"a", asking{StepType: "tool_call", Model: "\xff"}, workflow.BadRequest, "model"},
		"NUL":                  {"a", asking{StepType: "tool_call", Provider: "a\x00b"}, workflow.BadRequest, "provider"},
		"an array":             {"a", asking{StepType: "tool_call", StepInput: []byte(`[]`)}, workflow.BadRequest, "step_input"},
		"broken":               {"a", asking{StepType: "tool_call", StepInput: []byte(`{"a":`)}, workflow.BadRequest, "step_input"},
		"two objects":          {"a", asking{StepType: "tool_call", StepInput: []byte(`{} {}`)}, workflow.BadRequest, "step_input"},
		"invalid UTF-8 inside": {"a", asking{StepType: "tool_call", StepInput: []byte("{\"a\":\"\xff\"}")}, workflow.BadRequest, "step_input"},
		"large input":          {"a", asking{StepType: "tool_call", StepInput: big}, workflow.TooLarge, "step_input"},
		"no tool":              {"a", tool(workflow.ToolContext{}), workflow.InvalidToolContext, "tool_context.tool_name"},
		"a tool of ours":       {"a", tool(workflow.ToolContext{ToolName: "readback.notice"}), workflow.BadRequest, "tool_context.tool_name"},
		"long tool":            {"a", tool(workflow.ToolContext{ToolName: long}), workflow.InvalidToolContext, "tool_context.tool_name"},
		"tool input":           {"a", tool(workflow.ToolContext{ToolName: "t", ToolInput: []byte(`7`)}), workflow.InvalidToolContext, "tool_context.tool_input"},
		"large tool input":     {"a", tool(workflow.ToolContext{ToolName: "t", ToolInput: big}), workflow.TooLarge, "tool_context.tool_input"},
		"negative tokens":      {"a", asking{StepType: "tool_call", TokensIn: ptr(-1)}, workflow.BadRequest, "tokens_in"},
		"negative cost":        {"a", asking{StepType: "tool_call", CostUSD: ptr(-0.1)}, workflow.BadRequest, "cost_usd"},
		"lease too long":       {"a", asking{StepType: "tool_call", LeaseSeconds: 3601}, workflow.BadRequest, "lease_seconds"},
		"negative lease":       {"a", asking{StepType: "tool_call", LeaseSeconds: -1}, workflow.BadRequest, "lease_seconds"},
		"long step":            {strings.Repeat("a", 256), call(), workflow.BadRequest, "step_id"},
		"no step":              {"", call(), workflow.BadRequest, "step_id"},
		"line break in step":   {"a\nb", call(), workflow.BadRequest, "step_id"},
		"intent: no object":    {"a", asking{StepType: "tool_call", Intent: []byte(`7`)}, workflow.BadRequest, "intent"},
		"intent: empty":        {"a", asking{StepType: "tool_call", Intent: []byte(`{}`)}, workflow.BadRequest, "intent"},
		"intent: unknown part": {"a", asking{StepType: "tool_call", Intent: replaced(order, `{`, `{"surprise":1,`)}, workflow.BadRequest, "intent"},
		"intent: twice":        {"a", asking{StepType: "tool_call", Intent: replaced(order, `{`, `{"write":"create",`)}, workflow.BadRequest, "intent"},
		"intent: other tenant": {"a", asking{StepType: "tool_call", Intent: replaced(order, `{`, `{"tenant":"other",`)}, workflow.BadRequest, "intent.tenant"},
		"intent: other step":   {"a", asking{StepType: "tool_call", Intent: replaced(order, `{`, `{"step":"b",`)}, workflow.BadRequest, "intent.step"},
		"intent: other key":    {"a", asking{StepType: "tool_call", Intent: replaced(order, `{`, `{"idempotency_key":"k",`)}, workflow.BadRequest, "intent.idempotency_key"},
		"intent: large":        {"a", asking{StepType: "tool_call", Intent: big}, workflow.TooLarge, "intent"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			wf := b.begin()
			filed := b.store.filed.Load()
			e := b.refused(wf, tt.step, tt.ask)
			same(t, "code and field of "+e.Message, []any{e.Code, e.Field}, []any{tt.code, tt.field})
			if !strings.Contains(e.Message, strings.Split(tt.field, ".")[0]) {
				t.Errorf("the message does not name the field: %q", e.Message)
			}
			same(t, "commits", b.store.filed.Load(), filed)
			same(t, "steps", len(b.view(wf).Steps), 0)
		})
	}
}

func TestIntentsNeedSomebodyWhoLooks(t *testing.T) {
	b := newBench(t, func(o *workflow.Options) { o.Look = nil })
	if e := b.refused(b.begin(), "a", withIntent()); e.Code != workflow.BadRequest || e.Field != "intent" {
		t.Errorf("%v", e)
	}
	b = newBench(t, func(o *workflow.Options) { o.Look = picky{} })
	if e := b.refused(b.begin(), "a", withIntent()); e.Code != workflow.BadRequest || e.Field != "intent" || !strings.Contains(e.Message, "no destination") {
		t.Errorf("%v", e)
	}
}

// picky refuses every intent before it is recorded.
type picky struct{ workflow.Looker }

func (picky) Check(intent.WriteIntent) error { return ledgerError("no destination of that name") }

type ledgerError string

func (e ledgerError) Error() string { return string(e) }

func TestGoodGates(t *testing.T) {
	for name, r := range map[string]asking{
		"a key of 255 characters":   {StepType: "tool_call", IdempotencyKey: strings.Repeat("ä", 255)},
		"null for what is left out": {StepType: "llm_call", StepInput: []byte(`null`), Intent: []byte(`null`)},
		"a number no double holds":  {StepType: "connector_call", StepInput: []byte(`{"id":9007199254740993}`)},
		"a number beyond all":       {StepType: "human_task", StepInput: []byte(`{"id":1e400}`)},
		"a member twice":            {StepType: "tool_call", StepInput: []byte(`{"a":1,"a":2}`)},
		"names of the step again": {StepType: "tool_call", IdempotencyKey: "k",
			Intent: replaced(order, `{`, `{"tenant":"acme","step":"a","idempotency_key":"k",`)},
		"an hour": {StepType: "tool_call", LeaseSeconds: 3600},
	} {
		b := newBench(t, nil)
		wf := b.begin()
		b.ask(wf, "a", r)
		if got := b.ask(wf, "a", r); got.RetryContext.GateCount != 2 {
			t.Errorf("%s: the repeat is number %d", name, got.RetryContext.GateCount)
		}
	}
	b := newBench(t, nil)
	wf := b.begin()
	b.ask(wf, "a", asking{StepType: "tool_call", StepInput: []byte(`{"id":9007199254740993}`)})
	if e := b.refused(wf, "a", asking{StepType: "tool_call", StepInput: []byte(`{"id":9007199254740992}`)}); e.Code != workflow.InputMismatch {
		t.Errorf("two numbers that a double takes for one: %v", e)
	}
}

func TestBadWorkflows(t *testing.T) {
	for name, tt := range map[string]struct {
		r     workflow.CreateRequest
		code  workflow.Code
		field string
	}{
		"no name":      {workflow.CreateRequest{}, workflow.BadRequest, "workflow_name"},
		"long name":    {workflow.CreateRequest{WorkflowName: strings.Repeat("n", 256)}, workflow.BadRequest, "workflow_name"},
		"source":       {workflow.CreateRequest{WorkflowName: "n", Source: "cron"}, workflow.BadRequest, "source"},
		"metadata":     {workflow.CreateRequest{WorkflowName: "n", Metadata: []byte(`[]`)}, workflow.BadRequest, "metadata"},
		"long trace":   {workflow.CreateRequest{WorkflowName: "n", TraceID: strings.Repeat("t", 256)}, workflow.InvalidTraceID, "trace_id"},
		"large extras": {workflow.CreateRequest{WorkflowName: "n", Metadata: []byte(`{"x":"` + strings.Repeat("y", 65<<10) + `"}`)}, workflow.TooLarge, "metadata"},
	} {
		b := newBench(t, nil)
		_, err := b.gate.Create(t.Context(), agent, tt.r)
		e := asError(t, err)
		same(t, name, []any{e.Code, e.Field}, []any{tt.code, tt.field})
		same(t, name+": commits", b.store.filed.Load(), int64(0))
	}
	b := newBench(t, nil)
	if _, err := b.gate.Create(t.Context(), workflow.Caller{}, workflow.CreateRequest{WorkflowName: "n"}); asError(t, err).Code != workflow.Unauthorized {
		t.Errorf("without a tenant: %v", err)
	}
	if _, err := b.gate.Create(t.Context(), agent, workflow.CreateRequest{WorkflowName: "n", TraceID: strings.Repeat("ü", 255), Metadata: []byte(`{"a":"<b>"}`)}); err != nil {
		t.Errorf("a trace id of 255 characters: %v", err)
	}
}

func TestBadCompletions(t *testing.T) {
	for name, tt := range map[string]struct {
		step  string
		r     workflow.CompleteRequest
		code  workflow.Code
		field string
	}{
		"no such step":  {"b", workflow.CompleteRequest{}, workflow.NotFound, ""},
		"long key":      {"a", workflow.CompleteRequest{IdempotencyKey: strings.Repeat("k", 256)}, workflow.BadRequest, "idempotency_key"},
		"broken output": {"a", workflow.CompleteRequest{Output: []byte(`{`)}, workflow.BadRequest, "output"},
		"large output":  {"a", workflow.CompleteRequest{Output: []byte(`"` + strings.Repeat("y", 257<<10) + `"`)}, workflow.TooLarge, "output"},
		"tokens":        {"a", workflow.CompleteRequest{TokensOut: ptr(-1)}, workflow.BadRequest, "tokens_out"},
	} {
		b := newBench(t, nil)
		wf := b.begin()
		b.ask(wf, "a", call())
		before := b.view(wf)
		_, err := b.gate.CompleteStep(t.Context(), agent, wf, tt.step, tt.r)
		e := asError(t, err)
		same(t, name, []any{e.Code, e.Field}, []any{tt.code, tt.field})
		same(t, name+": the workflow", b.view(wf), before)
	}
}

// What is largest in everything still fits into one paper of the ledger.
func TestTheLargestStepFits(t *testing.T) {
	b := newBench(t, nil)
	fill := func(n int) json.RawMessage { return json.RawMessage(`{"x":"` + strings.Repeat("<", n-10) + `"}`) }
	wf := b.begin()
	r := asking{StepType: "tool_call", RetryPolicy: "reevaluate", IdempotencyKey: strings.Repeat("k", 255),
		ToolContext: &workflow.ToolContext{ToolName: strings.Repeat("t", 255), ToolInput: fill(64 << 10)},
		Intent:      replaced(order, `10`, `"`+strings.Repeat("z", 63<<10)+`"`)}
	for i := range 25 {
		r.StepInput = replaced(fill(128<<10), "<<", string(rune('a'+i)))
		b.ask(wf, "a", r)
	}
	b.complete(wf, "a", workflow.CompleteRequest{IdempotencyKey: r.IdempotencyKey, Output: fill(256 << 10)})
	p, err := b.store.Paper(t.Context(), tenant, "step", wf+"/a")
	if err != nil || !utf8.Valid(p.Body) || bytes.Contains(p.Body, []byte(`\u003c`)) {
		t.Errorf("the paper: %v", err)
	}
	t.Logf("%d KiB", len(p.Body)>>10)
}

func TestListings(t *testing.T) {
	b := newBench(t, nil)
	var ids []string
	for i := range 25 {
		made, err := b.gate.Create(t.Context(), agent, workflow.CreateRequest{WorkflowName: "w", Source: []string{"langgraph", "crewai"}[i%2], TraceID: "t" + string(rune('a'+i%3))})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made.WorkflowID)
	}
	b.end(ids[4], b.gate.Fail)
	for name, tt := range map[string]struct {
		r          workflow.ListRequest
		here, full int
		more       bool
	}{
		"default":     {workflow.ListRequest{}, 20, 25, true},
		"second page": {workflow.ListRequest{Offset: 20}, 5, 25, false},
		"failed":      {workflow.ListRequest{Status: "failed"}, 1, 1, false},
		"source":      {workflow.ListRequest{Source: "crewai"}, 12, 12, false},
		"trace":       {workflow.ListRequest{TraceID: "ta", Limit: 4}, 4, 9, true},
		"nothing":     {workflow.ListRequest{TraceID: "none"}, 0, 0, false},
	} {
		l, err := b.gate.List(t.Context(), agent, tt.r)
		if err != nil {
			t.Fatal(err)
		}
		same(t, name, []any{len(l.Workflows), l.Total, l.HasMore}, []any{tt.here, tt.full, tt.more})
		if l.Workflows == nil {
			t.Errorf("%s: null for an empty list", name)
		}
	}
	l, err := b.gate.List(t.Context(), agent, workflow.ListRequest{Limit: 1})
	if err != nil || l.Workflows[0].WorkflowID != ids[24] {
		t.Errorf("the newest is not the first: %+v, %v", l, err)
	}
	for name, r := range map[string]workflow.ListRequest{"status": {Status: "done"}, "source": {Source: "x"}, "limit": {Limit: -1}, "offset": {Offset: -1}} {
		if _, err := b.gate.List(t.Context(), agent, r); asError(t, err).Code != workflow.BadRequest {
			t.Errorf("bad %s: %v", name, err)
		}
	}
}

func TestCheckpoints(t *testing.T) {
	b := newBench(t, nil)
	wf := b.begin()
	for _, id := range []string{"a", "b", "c"} {
		b.ask(wf, id, call())
	}
	for _, id := range []string{"c", "a"} {
		b.complete(wf, id, workflow.CompleteRequest{})
	}
	l, err := b.gate.Checkpoints(t.Context(), agent, wf)
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, c := range l.Checkpoints {
		steps = append(steps, c.StepID)
	}
	same(t, "checkpoints", steps, []string{"a", "c"})
}

func TestAPaperThatCannotBeRead(t *testing.T) {
	b := newBench(t, nil)
	wf := b.begin()
	b.ask(wf, "a", call())
	p, err := b.store.Paper(t.Context(), tenant, "step", wf+"/a")
	if err != nil {
		t.Fatal(err)
	}
	p.Body = []byte(`{}`)
	if _, err := b.store.File(t.Context(), ledger.Filing{Papers: []ledger.Paper{p}}); err != nil {
		t.Fatal(err)
	}
	if e := b.refused(wf, "a", call()); e.Code != workflow.Internal {
		t.Errorf("%v", e)
	}
}
