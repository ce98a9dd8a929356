package gate_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

func ptr[T any](v T) *T { return &v }

func TestBadGates(t *testing.T) {
	long := strings.Repeat("ä", 256)
	big := json.RawMessage(`{"x":"` + strings.Repeat("y", 300<<10) + `"}`)
	tool := func(c gate.ToolContext) asking { return asking{StepType: "tool_call", ToolContext: &c} }
	for name, tt := range map[string]struct {
		step  string
		ask   asking
		code  gate.Code
		field string
	}{
		"no type":              {"a", asking{}, gate.BadRequest, "step_type"},
		"another type":         {"a", asking{StepType: "magic"}, gate.BadRequest, "step_type"},
		"another policy":       {"a", asking{StepType: "tool_call", RetryPolicy: "often"}, gate.BadRequest, "retry_policy"},
		"long key":             {"a", asking{StepType: "tool_call", IdempotencyKey: long}, gate.BadRequest, "idempotency_key"},
		"long name":            {"a", asking{StepType: "tool_call", StepName: long}, gate.BadRequest, "step_name"},
		"no text":              {"a", asking{StepType: "tool_call", Model: "\xff"}, gate.BadRequest, "model"},
		"NUL":                  {"a", asking{StepType: "tool_call", Provider: "a\x00b"}, gate.BadRequest, "provider"},
		"an array":             {"a", asking{StepType: "tool_call", StepInput: []byte(`[]`)}, gate.BadRequest, "step_input"},
		"broken":               {"a", asking{StepType: "tool_call", StepInput: []byte(`{"a":`)}, gate.BadRequest, "step_input"},
		"two objects":          {"a", asking{StepType: "tool_call", StepInput: []byte(`{} {}`)}, gate.BadRequest, "step_input"},
		"invalid UTF-8 inside": {"a", asking{StepType: "tool_call", StepInput: []byte("{\"a\":\"\xff\"}")}, gate.BadRequest, "step_input"},
		"large input":          {"a", asking{StepType: "tool_call", StepInput: big}, gate.TooLarge, "step_input"},
		"no tool":              {"a", tool(gate.ToolContext{}), gate.InvalidToolContext, "tool_context.tool_name"},
		"a tool of ours":       {"a", tool(gate.ToolContext{ToolName: "readback.notice"}), gate.BadRequest, "tool_context.tool_name"},
		"long tool":            {"a", tool(gate.ToolContext{ToolName: long}), gate.InvalidToolContext, "tool_context.tool_name"},
		"tool input":           {"a", tool(gate.ToolContext{ToolName: "t", ToolInput: []byte(`7`)}), gate.InvalidToolContext, "tool_context.tool_input"},
		"large tool input":     {"a", tool(gate.ToolContext{ToolName: "t", ToolInput: big}), gate.TooLarge, "tool_context.tool_input"},
		"negative tokens":      {"a", asking{StepType: "tool_call", TokensIn: ptr(-1)}, gate.BadRequest, "tokens_in"},
		"negative cost":        {"a", asking{StepType: "tool_call", CostUSD: ptr(-0.1)}, gate.BadRequest, "cost_usd"},
		"lease too long":       {"a", asking{StepType: "tool_call", LeaseSeconds: 3601}, gate.BadRequest, "lease_seconds"},
		"negative lease":       {"a", asking{StepType: "tool_call", LeaseSeconds: -1}, gate.BadRequest, "lease_seconds"},
		"long step":            {strings.Repeat("a", 256), call(), gate.BadRequest, "step_id"},
		"no step":              {"", call(), gate.BadRequest, "step_id"},
		"line break in step":   {"a\nb", call(), gate.BadRequest, "step_id"},
		"intent: no object":    {"a", asking{StepType: "tool_call", Intent: []byte(`7`)}, gate.BadRequest, "intent"},
		"intent: empty":        {"a", asking{StepType: "tool_call", Intent: []byte(`{}`)}, gate.BadRequest, "intent"},
		"intent: unknown part": {"a", asking{StepType: "tool_call", Intent: replaced(order, `{`, `{"surprise":1,`)}, gate.BadRequest, "intent"},
		"intent: twice":        {"a", asking{StepType: "tool_call", Intent: replaced(order, `{`, `{"write":"create",`)}, gate.BadRequest, "intent"},
		"intent: other tenant": {"a", asking{StepType: "tool_call", Intent: replaced(order, `{`, `{"tenant":"other",`)}, gate.BadRequest, "intent.tenant"},
		"intent: other step":   {"a", asking{StepType: "tool_call", Intent: replaced(order, `{`, `{"step":"b",`)}, gate.BadRequest, "intent.step"},
		"intent: other key":    {"a", asking{StepType: "tool_call", Intent: replaced(order, `{`, `{"idempotency_key":"k",`)}, gate.BadRequest, "intent.idempotency_key"},
		"intent: large":        {"a", asking{StepType: "tool_call", Intent: big}, gate.TooLarge, "intent"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			wf := b.begin()
			committed := b.store.commits.Load()
			e := b.refused(wf, tt.step, tt.ask)
			same(t, "code and field of "+e.Message, []any{e.Code, e.Field}, []any{tt.code, tt.field})
			if !strings.Contains(e.Message, strings.Split(tt.field, ".")[0]) {
				t.Errorf("the message does not name the field: %q", e.Message)
			}
			same(t, "commits", b.store.commits.Load(), committed)
			same(t, "steps", len(b.view(wf).Steps), 0)
		})
	}
}

func TestIntentsNeedAReader(t *testing.T) {
	b := newBench(t, func(o *gate.Options) { o.Reader = nil })
	if e := b.refused(b.begin(), "a", withIntent()); e.Code != gate.BadRequest || e.Field != "intent" {
		t.Errorf("%v", e)
	}
	b = newBench(t, func(o *gate.Options) { o.Reader = picky{} })
	if e := b.refused(b.begin(), "a", withIntent()); e.Code != gate.BadRequest || e.Field != "intent" || !strings.Contains(e.Message, "no destination") {
		t.Errorf("%v", e)
	}
}

// picky refuses every intent before it is recorded.
type picky struct{ gate.Reader }

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
	if e := b.refused(wf, "a", asking{StepType: "tool_call", StepInput: []byte(`{"id":9007199254740992}`)}); e.Code != gate.InputMismatch {
		t.Errorf("two numbers that a float64 cannot distinguish: %v", e)
	}
}

func TestBadWorkflows(t *testing.T) {
	for name, tt := range map[string]struct {
		r     gate.CreateRequest
		code  gate.Code
		field string
	}{
		"no name":      {gate.CreateRequest{}, gate.BadRequest, "workflow_name"},
		"long name":    {gate.CreateRequest{WorkflowName: strings.Repeat("n", 256)}, gate.BadRequest, "workflow_name"},
		"source":       {gate.CreateRequest{WorkflowName: "n", Source: "cron"}, gate.BadRequest, "source"},
		"metadata":     {gate.CreateRequest{WorkflowName: "n", Metadata: []byte(`[]`)}, gate.BadRequest, "metadata"},
		"long trace":   {gate.CreateRequest{WorkflowName: "n", TraceID: strings.Repeat("t", 256)}, gate.InvalidTraceID, "trace_id"},
		"large extras": {gate.CreateRequest{WorkflowName: "n", Metadata: []byte(`{"x":"` + strings.Repeat("y", 65<<10) + `"}`)}, gate.TooLarge, "metadata"},
	} {
		b := newBench(t, nil)
		_, err := b.gate.Create(t.Context(), agent, tt.r)
		e := asError(t, err)
		same(t, name, []any{e.Code, e.Field}, []any{tt.code, tt.field})
		same(t, name+": commits", b.store.commits.Load(), int64(0))
	}
	b := newBench(t, nil)
	if _, err := b.gate.Create(t.Context(), gate.Caller{}, gate.CreateRequest{WorkflowName: "n"}); asError(t, err).Code != gate.Unauthorized {
		t.Errorf("without a tenant: %v", err)
	}
	if _, err := b.gate.Create(t.Context(), agent, gate.CreateRequest{WorkflowName: "n", TraceID: strings.Repeat("ü", 255), Metadata: []byte(`{"a":"<b>"}`)}); err != nil {
		t.Errorf("a trace id of 255 characters: %v", err)
	}
}

func TestBadCompletions(t *testing.T) {
	for name, tt := range map[string]struct {
		step  string
		r     gate.CompleteRequest
		code  gate.Code
		field string
	}{
		"no such step":  {"b", gate.CompleteRequest{}, gate.NotFound, ""},
		"long key":      {"a", gate.CompleteRequest{IdempotencyKey: strings.Repeat("k", 256)}, gate.BadRequest, "idempotency_key"},
		"broken output": {"a", gate.CompleteRequest{Output: []byte(`{`)}, gate.BadRequest, "output"},
		"large output":  {"a", gate.CompleteRequest{Output: []byte(`"` + strings.Repeat("y", 257<<10) + `"`)}, gate.TooLarge, "output"},
		"tokens":        {"a", gate.CompleteRequest{TokensOut: ptr(-1)}, gate.BadRequest, "tokens_out"},
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

// A step with every part at its largest still fits into one document of the ledger.
func TestTheLargestStepFits(t *testing.T) {
	b := newBench(t, nil)
	fill := func(n int) json.RawMessage { return json.RawMessage(`{"x":"` + strings.Repeat("<", n-10) + `"}`) }
	wf := b.begin()
	r := asking{StepType: "tool_call", RetryPolicy: "reevaluate", IdempotencyKey: strings.Repeat("k", 255),
		ToolContext: &gate.ToolContext{ToolName: strings.Repeat("t", 255), ToolInput: fill(64 << 10)},
		Intent:      replaced(order, `10`, `"`+strings.Repeat("z", 63<<10)+`"`)}
	for i := range 25 {
		r.StepInput = replaced(fill(128<<10), "<<", string(rune('a'+i)))
		b.ask(wf, "a", r)
	}
	b.complete(wf, "a", gate.CompleteRequest{IdempotencyKey: r.IdempotencyKey, Output: fill(256 << 10)})
	p, err := b.store.Document(t.Context(), tenant, "step", wf+"/a")
	if err != nil || !utf8.Valid(p.Body) || bytes.Contains(p.Body, []byte(`\u003c`)) {
		t.Errorf("the document: %v", err)
	}
	t.Logf("%d KiB", len(p.Body)>>10)
}

func TestListings(t *testing.T) {
	b := newBench(t, nil)
	var ids []string
	for i := range 25 {
		made, err := b.gate.Create(t.Context(), agent, gate.CreateRequest{WorkflowName: "w", Source: []string{"langgraph", "crewai"}[i%2], TraceID: "t" + string(rune('a'+i%3))})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made.WorkflowID)
	}
	b.end(ids[4], b.gate.Fail)
	for name, tt := range map[string]struct {
		r          gate.ListRequest
		here, full int
		more       bool
	}{
		"default":     {gate.ListRequest{}, 20, 25, true},
		"second page": {gate.ListRequest{Offset: 20}, 5, 25, false},
		"failed":      {gate.ListRequest{Status: "failed"}, 1, 1, false},
		"source":      {gate.ListRequest{Source: "crewai"}, 12, 12, false},
		"trace":       {gate.ListRequest{TraceID: "ta", Limit: 4}, 4, 9, true},
		"nothing":     {gate.ListRequest{TraceID: "none"}, 0, 0, false},
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
	l, err := b.gate.List(t.Context(), agent, gate.ListRequest{Limit: 1})
	if err != nil || l.Workflows[0].WorkflowID != ids[24] {
		t.Errorf("the newest is not the first: %+v, %v", l, err)
	}
	for name, r := range map[string]gate.ListRequest{"status": {Status: "done"}, "source": {Source: "x"}, "limit": {Limit: -1}, "offset": {Offset: -1}} {
		if _, err := b.gate.List(t.Context(), agent, r); asError(t, err).Code != gate.BadRequest {
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
		b.complete(wf, id, gate.CompleteRequest{})
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

func TestADocumentThatCannotBeRead(t *testing.T) {
	b := newBench(t, nil)
	wf := b.begin()
	b.ask(wf, "a", call())
	p, err := b.store.Document(t.Context(), tenant, "step", wf+"/a")
	if err != nil {
		t.Fatal(err)
	}
	p.Body = []byte(`{}`)
	if _, err := b.store.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{p}}); err != nil {
		t.Fatal(err)
	}
	if e := b.refused(wf, "a", call()); e.Code != gate.Internal {
		t.Errorf("%v", e)
	}
}
