// Package intent is the contract: it declares, before anything is sent, what a caller wants to
// be true at a destination.
//
// A [WriteIntent] declares where the write came from (tenant, workflow, step, tool, call),
// where it goes (destination, kind), how to query the record deterministically (key), what to
// do (write) and what must be observed afterwards (expect). Three names are derived from it,
// and from nothing else: the structural key ([WriteIntent.StructuralKey]), the digest
// ([WriteIntent.Digest]) and the stamp ([WriteIntent.Stamp]).
//
// Most callers need [Decode] for JSON from outside, or [From] for a Go struct with tags.
// [Schema] describes the JSON, [Normalize] makes [Fields] from Go values, and [Lookup] finds
// one of them.
//
// The package does not know whether a destination exists, what it can do, or whether a key is
// unique there: connectors and engine do.
package intent

import "time"

// WriteType is what the write does to the record named by the business key.
type WriteType string

// The write types. There is no default: an intent without one is refused.
const (
	Create WriteType = "create" // the record must not exist yet
	Update WriteType = "update" // the record must exist; the named fields change
	Upsert WriteType = "upsert" // created or brought to the expected state
	Delete WriteType = "delete" // the record must be gone afterwards
)

// Risk says who must approve before the write is sent.
type Risk string

// The risk classes, least careful first. Configuration may raise one, never
// lower it. The zero value means auto, unless a gate raises it.
const (
	RiskAuto    Risk = "auto"    // send
	RiskLog     Risk = "log"     // send, and mark the record for later review
	RiskApprove Risk = "approve" // hold until a reviewer approves
)

// Reversibility says how a workflow may treat the write afterwards.
type Reversibility string

// The reversibility classes. The zero value means pivot: not to be undone by
// the engine.
const (
	Compensable Reversibility = "compensable" // may be undone by a compensating write
	Pivot       Reversibility = "pivot"       // decides the workflow; never undone automatically
	Retryable   Reversibility = "retryable"   // follows the pivot; is repeated until it succeeds
)

// MismatchPolicy says what to do when the record exists and differs from the expected state.
type MismatchPolicy string

// The mismatch policies. The zero value means escalate.
const (
	MismatchEscalate   MismatchPolicy = "escalate"   // a reviewer decides
	MismatchRetry      MismatchPolicy = "retry"      // send again where that is provably harmless, else a reviewer
	MismatchCompensate MismatchPolicy = "compensate" // undo where the write is compensable, else a reviewer
	MismatchRepair     MismatchPolicy = "repair"     // update our own record with what was not stored, else a reviewer
)

// Fields are decoded JSON members. Values are nil, bool, string, [json.Number] (numbers stay
// exact), []any and map[string]any, and nothing else; [Normalize] makes them from Go values.
// Null, missing and empty are three different things.
//
// [json.Number]: https://pkg.go.dev/encoding/json#Number
type Fields map[string]any

// WriteIntent is one declared write. It is a value: readback changes none after accepting it.
//
// Names are 1 to 255 printable ASCII characters, blanks allowed inside but not at the ends
// ("acme/crm", "wf_1a2b", "order-17"). Only ASCII is allowed, since one word in two Unicode
// normalisations would name two writes. Paths are JSON Pointers (RFC 6901) into the record, for
// example "/amount" or "/address/city".
//
// In JSON, omit a member to get its default: null, "" and a count of 0 are refused. Numbers
// must fit an IEEE double; send larger or finer ones as strings.
type WriteIntent struct {
	// Tenant owns the write; nothing crosses tenants. Required.
	Tenant string `json:"tenant" validate:"required,name"`
	// Workflow is the workflow run that the write belongs to. With tenant,
	// step, tool and call it is the whole of the structural key. Required.
	Workflow string `json:"workflow" validate:"required,name"`
	// Step is the step of the workflow. Default none.
	Step string `json:"step,omitempty" validate:"omitempty,name"`
	// Tool is the tool that the step calls. Required.
	Tool string `json:"tool" validate:"required,name"`
	// Call distinguishes several calls of one tool in one step: 0, 1, 2, …
	// Default 0.
	Call int `json:"call,omitzero" validate:"min=0,max=1000000"`

	// Destination names a registered destination. Required.
	Destination string `json:"destination" validate:"required,name"`
	// Kind is the kind of record there ("order", "message"). Required.
	Kind string `json:"kind" validate:"required,name"`
	// Key is the business key: the fields by which the destination can be
	// asked for the record. Scalars that are neither null nor empty, at least
	// one. Required.
	Key Fields `json:"key" validate:"required"`
	// Write is what to do. Required.
	Write WriteType `json:"write" validate:"required,oneof=create update upsert delete"`

	// Expect is the state that a later read must find. A field that is in the
	// key too must have the same value. Required for create, update and
	// upsert; none for delete.
	Expect Fields `json:"expect,omitempty"`
	// Absent lists paths of fields that must not exist in the record
	// afterwards. A field that is there with the value null is not absent.
	// None for delete. Default none.
	Absent []string `json:"absent,omitempty" validate:"max=256,unique,dive,pointer"`
	// Payload is sent with the write and not verified. It shares no field with
	// expect. None for delete. Default none.
	Payload Fields `json:"payload,omitempty"`
	// Require is what must hold in the record before the first send of an
	// update, upsert or delete; otherwise nothing is sent. None for create.
	// Default nothing.
	Require Fields `json:"require,omitempty"`
	// Ignore lists paths of fields whose value is neither compared nor counted
	// as collateral change. No key field, and not all that is expected.
	// Default none.
	Ignore []string `json:"ignore,omitempty" validate:"max=256,unique,dive,pointer"`
	// Compare gives, by path, how a field is compared; an empty list means
	// exactly. Default: the destination's own rules for the field, else exact
	// equality.
	Compare map[string]Comparison `json:"compare,omitempty"`
	// Count is how many records the key must match: after a create, update or
	// upsert, and before a delete. Default 1.
	Count int `json:"count,omitzero" validate:"min=0,max=10000"`

	// Risk says who must agree first. Default auto.
	Risk Risk `json:"risk,omitempty" validate:"omitempty,oneof=auto log approve"`
	// Reversibility says whether the engine may undo the write. Default pivot.
	Reversibility Reversibility `json:"reversibility,omitempty" validate:"omitempty,oneof=compensable pivot retryable"`
	// OnMismatch says what to do about a record that differs; compensate needs
	// a compensable write, repair one that is no delete. Default escalate.
	OnMismatch MismatchPolicy `json:"on_mismatch,omitempty" validate:"omitempty,oneof=escalate retry compensate repair"`
	// Deadline is the time after which no send is begun; reads continue.
	// Default none.
	Deadline time.Time `json:"deadline,omitzero"`

	// IdempotencyKey is the caller's name for the business operation
	// ("wire:invoice-7721"), written as a name. Default none.
	IdempotencyKey string `json:"idempotency_key,omitempty" validate:"max=255,printable"`
	// CorrelationID is carried through to events and logs, written as a name.
	// Default none.
	CorrelationID string `json:"correlation_id,omitempty" validate:"max=255,printable"`

	// Sensitive lists paths of fields, of the key, expect, payload, require or of
	// the record as it is read, whose values are never shown or stored in the clear:
	// a keyed digest takes their place. It has no part in
	// the digest. Default: what the destination and the configuration say.
	Sensitive []string `json:"sensitive,omitempty" validate:"max=256,unique,dive,pointer"`
	// Context is what the caller says about how it came to ask: the model, a
	// digest of the prompt, the run. It is kept and shown, proves nothing, and has
	// no part in the digest. At most 16 members; names as those of fields, values
	// of at most 256 bytes. Default none.
	Context map[string]string `json:"context,omitempty"`

	// Compensates is the write that this one undoes. Only the engine sets it; every API refuses
	// it.
	Compensates string `json:"compensates,omitempty" validate:"omitempty,max=64,printable"`
}

// Want returns the number of records that the key must match: Count, or 1.
func (w WriteIntent) Want() int {
	if w.Count == 0 {
		return 1
	}
	return w.Count
}

// RuleName names one comparison rule.
type RuleName string

// The comparison rules. All but the last three normalise both sides. They are applied in the
// order written, and then the sides must be equal. Numeric, time and set end a list: they
// compare.
const (
	RuleTrim     RuleName = "trim"     // strings: leading and trailing white space is ignored
	RuleFold     RuleName = "fold"     // strings: letter case is ignored (Unicode simple folding)
	RuleCRLF     RuleName = "crlf"     // strings: CRLF and LF are the same line end
	RuleUnescape RuleName = "unescape" // strings: HTML entities equal their characters
	RuleText     RuleName = "text"     // strings: markup is dropped, white space runs are one blank
	RuleEmpty    RuleName = "empty"    // missing, null and "" are the same
	RuleString   RuleName = "string"   // numbers and booleans equal their text as a string
	RuleNumeric  RuleName = "numeric"  // numbers or numeric strings, equal within Tolerance
	RuleTime     RuleName = "time"     // points in time, equal to Precision; Zone for values without one
	RuleSet      RuleName = "set"      // arrays: order and repeats are ignored
)

// Rule is one step of a comparison.
type Rule struct {
	// Name is the rule. Numeric, time and set must be the last of a list.
	// Required.
	Name RuleName `json:"rule" validate:"required,oneof=trim fold crlf unescape text empty string numeric time set"`
	// Tolerance, for numeric, is the largest difference allowed, as a decimal
	// ("0.005"). Default "0".
	Tolerance string `json:"tolerance,omitempty"`
	// Precision, for time, is what both sides are rounded to, as a Go duration
	// ("1s"). Default: to the nanosecond.
	Precision string `json:"precision,omitempty"`
	// Zone, for time, is the IANA zone of values that name none. Default
	// "UTC".
	Zone string `json:"zone,omitempty"`
}

// Comparison is the ordered list of rules for one field. An empty list means exact: same JSON
// type and same value, where numbers are equal when they denote the same decimal value.
type Comparison []Rule
