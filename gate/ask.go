package gate

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
)

// Bounds of external input. All of it is kept in ledger documents of at most 1 MiB; together
// these stay below that.
const (
	// maxKey and maxTrace are the contract's, in characters.
	maxKey   = 255
	maxTrace = 255
	// maxName, in characters, bounds display names: of a workflow, a step, a tool, a model.
	maxName = 255
	// maxStepID, in bytes. A document's ID is the workflow's ID, a slash and the step's ID, and a
	// step ID is a path segment in a URL.
	maxStepID = 255
	// maxInput, maxTool, maxIntent, maxOutput and maxMetadata are in bytes of JSON. Keep larger
	// values in another store, and pass a reference.
	maxInput    = 128 << 10
	maxTool     = 64 << 10
	maxIntent   = 64 << 10
	maxOutput   = 256 << 10
	maxMetadata = 64 << 10
	// maxReason bounds the reason for a decision, in characters.
	maxReason = 1000
	// maxSteps is how many steps one workflow may have. All of them are read when it ends. An
	// agent loop that comes near this bound is out of control.
	maxSteps = 1000
	// maxUndone is how many uncompleted steps are searched for those of one business operation.
	// Reviewers ask rarely, about recent steps, and can wait a second or two.
	maxUndone = 1000
	// maxDigestShown is how many characters of a digest a message shows: enough to distinguish
	// two.
	maxDigestShown = 16
	// maxList is the largest page of a listing; defaultList is the contract's.
	maxList     = 100
	defaultList = 20
)

const (
	idempotent = "idempotent"
	reevaluate = "reevaluate"
)

// asked is a step's request, as stored.
type asked struct {
	Input  json.RawMessage `json:"input,omitempty"`
	Tool   *ToolContext    `json:"tool,omitempty"`
	Intent json.RawMessage `json:"intent,omitempty"` // with all its names filled in
	// InputDigest, ToolDigest and IntentDigest are over canonical JSON, "" where the part is
	// missing. Digest is over all of them.
	InputDigest  string `json:"input_digest,omitempty"`
	ToolDigest   string `json:"tool_digest,omitempty"`
	IntentDigest string `json:"intent_digest,omitempty"`
	Digest       string `json:"digest"`
}

// differs returns the field in which two requests differ, "" if they are equal.
func (a asked) differs(b asked) string {
	switch {
	case a.InputDigest != b.InputDigest:
		return "step_input"
	case a.ToolDigest != b.ToolDigest:
		return "tool_context"
	case a.IntentDigest != b.IntentDigest:
		return "intent"
	}
	return ""
}

// toolName is the tool of the business operation.
func (a asked) toolName(stepID string, w *intent.WriteIntent) string {
	switch {
	case a.Tool != nil:
		return a.Tool.ToolName
	case w != nil:
		return w.Tool
	}
	return stepID
}

func (a asked) bytes() int {
	n := len(a.Input) + len(a.Intent)
	if a.Tool != nil {
		n += len(a.Tool.ToolInput)
	}
	return n
}

// declared is the intent, nil if there is none.
func (a asked) declared() *intent.WriteIntent {
	if len(a.Intent) == 0 {
		return nil
	}
	w, err := intent.DecodeStored(a.Intent)
	if err != nil {
		return nil
	}
	return &w
}

// ask is a validated gate request.
type ask struct {
	GateRequest
	asked  asked
	intent *intent.WriteIntent
	lease  time.Duration
}

// newAsk validates a request and fills in its defaults.
func (o *Options) newAsk(c Caller, workflowID, stepID string, r GateRequest) (ask, error) {
	r.RetryPolicy = cmp.Or(r.RetryPolicy, idempotent)
	if r.StepType == "" {
		return ask{}, badRequest("step_type", "is required")
	}
	if err := cmp.Or(c.check(), c.mayAct(), checkIDs(workflowID, stepID),
		oneOf("step_type", r.StepType, "llm_call", "tool_call", "connector_call", "human_task"),
		oneOf("retry_policy", r.RetryPolicy, idempotent, reevaluate),
		text(maxKey, "idempotency_key", r.IdempotencyKey),
		text(maxName, "step_name", r.StepName, "model", r.Model, "provider", r.Provider),
		counts(r.TokensIn, r.TokensOut, r.CostUSD), checkTool(r.ToolContext),
	); err != nil {
		return ask{}, err
	}
	if r.LeaseSeconds < 0 || r.LeaseSeconds > int(o.MaxLease/time.Second) {
		return ask{}, badRequest("lease_seconds", "is %d; want 1 to %d, or it left out for %d", r.LeaseSeconds, o.MaxLease/time.Second, o.Lease/time.Second)
	}
	a := ask{GateRequest: r, lease: cmp.Or(time.Duration(r.LeaseSeconds)*time.Second, o.Lease)}
	var err error
	if a.asked.Input, a.asked.InputDigest, err = object("step_input", r.StepInput, maxInput); err != nil {
		return ask{}, err
	}
	if err := a.takeTool(); err != nil {
		return ask{}, err
	}
	if a.intent, err = o.takeIntent(c, workflowID, stepID, r); err != nil {
		return ask{}, err
	}
	if a.intent != nil {
		if a.asked.Intent, err = a.intent.Encode(); err != nil {
			return ask{}, badRequest("intent", "cannot be kept: %v", err)
		}
		a.asked.IntentDigest = digest(a.asked.Intent)
	}
	if err := outside(c.Scope.CoversCall(a.asked.toolName(stepID, a.intent), a.intent)); err != nil {
		return ask{}, err
	}
	a.asked.Digest = digest([]byte(a.asked.InputDigest), []byte(a.asked.ToolDigest), []byte(a.asked.IntentDigest))
	return a, nil
}

func counts(in, out *int, cost *float64) error {
	switch {
	case in != nil && *in < 0:
		return badRequest("tokens_in", "is %d; want a number of tokens, at least 0", *in)
	case out != nil && *out < 0:
		return badRequest("tokens_out", "is %d; want a number of tokens, at least 0", *out)
	case cost != nil && !(*cost >= 0 && *cost <= math.MaxFloat64):
		return badRequest("cost_usd", "is %v; want US dollars, at least 0", *cost)
	}
	return nil
}

func checkTool(t *ToolContext) error {
	if t == nil {
		return nil
	}
	if t.ToolName == "" {
		return &Error{Code: InvalidToolContext, Field: "tool_context.tool_name", Message: "tool_context.tool_name is required"}
	}
	return aboutTool(text(maxName, "tool_context.tool_name", t.ToolName, "tool_context.tool_type", t.ToolType))
}

// aboutTool wraps a refusal in the contract's code for tools.
func aboutTool(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Code == BadRequest {
		e.Code = InvalidToolContext
	}
	return err
}

func (a *ask) takeTool() error {
	if a.ToolContext == nil {
		return nil
	}
	input, _, err := object("tool_context.tool_input", a.ToolContext.ToolInput, maxTool)
	if err != nil {
		return aboutTool(err)
	}
	if strings.HasPrefix(a.ToolContext.ToolName, engine.OwnTools) { // otherwise a step could take the place of a notice
		return badRequest("tool_context.tool_name", "begins with %s, as what readback writes itself does; want another name", engine.OwnTools)
	}
	t := *a.ToolContext
	t.ToolInput = input
	whole, err := json.Marshal(t)
	if err != nil {
		return badRequest("tool_context", "cannot be kept: %v", err)
	}
	_, a.asked.ToolDigest, err = object("tool_context", whole, len(whole))
	a.asked.Tool = &t
	return err
}

// object compacts a JSON object from outside and returns the digest of its canonical form. It
// returns nothing if the object is missing or null.
func object(field string, raw json.RawMessage, most int) (json.RawMessage, string, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, "", nil
	}
	if err := size(field, len(raw), most); err != nil {
		return nil, "", err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil || dec.More() || !clean(string(raw)) {
		return nil, "", badRequest(field, "is no JSON object; want one, or it left out")
	}
	var small bytes.Buffer
	if err := json.Compact(&small, raw); err != nil {
		return nil, "", badRequest(field, "is no JSON object; want one, or it left out")
	}
	text, err := intent.Canonical(v)
	if err != nil {
		// The published gate accepts numbers that no double holds exactly. They are compared as
		// written.
		if text, err = json.Marshal(v); err != nil {
			return nil, "", badRequest(field, "cannot be kept: %v", err)
		}
	}
	return small.Bytes(), digest(text), nil
}

// digest is the hex SHA-256 over parts, each with its length.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(append([]byte(strconv.Itoa(len(p))+":"), p...))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// takeIntent reads the WriteIntent of a step. The intent may omit what the step declares, and may
// not contradict it.
func (o *Options) takeIntent(c Caller, workflowID, stepID string, r GateRequest) (*intent.WriteIntent, error) {
	raw := bytes.TrimSpace(r.Intent)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if err := size("intent", len(raw), maxIntent); err != nil {
		return nil, err
	}
	if o.Reader == nil {
		return nil, badRequest("intent", "cannot be read back: this gate reads no destinations; leave it out")
	}
	tool := stepID
	if r.ToolContext != nil {
		tool = r.ToolContext.ToolName
	}
	whole, err := filledIn(raw, [][2]string{{"tenant", c.Tenant}, {"workflow", workflowID}, {"step", stepID},
		{"tool", tool}, {"idempotency_key", r.IdempotencyKey}})
	if err != nil {
		return nil, err
	}
	w, err := intent.Decode(whole)
	if err != nil {
		return nil, &Error{Code: BadRequest, Field: "intent", Message: "intent: " + err.Error(), Err: err}
	}
	for _, same := range [][3]string{{"tenant", w.Tenant, c.Tenant}, {"workflow", w.Workflow, workflowID},
		{"step", w.Step, stepID}, {"idempotency_key", w.IdempotencyKey, r.IdempotencyKey}} {
		if same[1] != same[2] {
			return nil, badRequest("intent."+same[0], "is %q; want it left out, or %q as the step has it", shortened(same[1]), same[2])
		}
	}
	if checker, ok := o.Reader.(interface {
		Check(intent.WriteIntent) error
	}); ok {
		if err := checker.Check(w); err != nil {
			return nil, &Error{Code: BadRequest, Field: "intent", Message: "intent: " + err.Error(), Err: err}
		}
	}
	return &w, nil
}

// filledIn adds members that a JSON object lacks. The rest of the text is unchanged, so that a
// strict reader sees all of it.
func filledIn(raw []byte, members [][2]string) ([]byte, error) {
	var has map[string]json.RawMessage
	if err := json.Unmarshal(raw, &has); err != nil || has == nil {
		return nil, badRequest("intent", "is no JSON object; want a WriteIntent")
	}
	var head []byte
	for _, m := range members {
		if _, there := has[m[0]]; there || m[1] == "" {
			continue
		}
		value, err := json.Marshal(m[1])
		if err != nil {
			return nil, badRequest("intent", "cannot be read: %v", err)
		}
		head = append(append(append(head, `"`+m[0]+`":`...), value...), ',')
	}
	if len(has) == 0 {
		head = bytes.TrimSuffix(head, []byte(","))
	}
	return append(append([]byte("{"), head...), raw[1:]...), nil
}
