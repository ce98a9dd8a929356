package saga

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/jsonkind"
)

const (
	// MaxSteps is how many steps a plan may have. Each move reads the records of all begun steps,
	// and a reviewer must be able to understand the whole saga.
	MaxSteps = 32
	// MaxPlan is the largest plan in bytes of JSON. The plan is rewritten with each move, and
	// must leave space in its document.
	MaxPlan = 512 << 10
	// maxMembers bounds the members of one intent of a plan; an intent has some twenty.
	maxMembers = 64
)

// document is a plan in JSON.
type document struct {
	Tenant        string         `json:"tenant"`
	ID            string         `json:"id"`
	CorrelationID string         `json:"correlation_id,omitzero"`
	Steps         []documentStep `json:"steps"`
}

type documentStep struct {
	Name   string         `json:"name"`
	Intent jsontext.Value `json:"intent"`
	After  []string       `json:"after,omitempty"`
	Revert string         `json:"revert,omitzero"`
	Grace  string         `json:"grace,omitzero"`
	Undo   jsontext.Value `json:"undo,omitzero"`
}

// Decode reads a plan in JSON: an object with tenant, id, correlation_id and steps, each with
// name, intent, after, revert (easy, hard or never), grace (a duration, "5m") and undo. It is as
// strict as [intent.Decode]; an intent may omit tenant, workflow and step. Every error is a
// [PlanError].
func Decode(data []byte) (Plan, error) {
	var d document
	if len(data) > MaxPlan {
		return Plan{}, tooLarge(len(data))
	}
	err := json.Unmarshal(data, &d, json.RejectUnknownMembers(true), json.WithUnmarshalers(json.UnmarshalFromFunc(decodeSteps)))
	if errors.Is(err, errSteps) {
		return Plan{}, &PlanError{Path: "/steps", Problem: fmt.Sprintf("has more than %d steps", MaxSteps), Want: fmt.Sprintf("1 to %d", MaxSteps)}
	}
	if err != nil {
		return Plan{}, unreadable(err)
	}
	p := Plan{Tenant: d.Tenant, ID: d.ID, CorrelationID: d.CorrelationID}
	for _, s := range d.Steps {
		p.Steps = append(p.Steps, Step{Name: s.Name, After: s.After, Revert: Revert(s.Revert)})
	}
	if err := p.named(); err != nil {
		return Plan{}, err
	}
	for i, s := range d.Steps {
		if err := p.decodeStep(i, s); err != nil {
			return Plan{}, err
		}
	}
	return p.filled()
}

var errSteps = errors.New("too many steps")

// decodeSteps reads no more steps than a plan may have.
func decodeSteps(dec *jsontext.Decoder, steps *[]documentStep) error {
	if dec.PeekKind() != jsontext.KindBeginArray {
		return errors.ErrUnsupported
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != jsontext.KindEndArray {
		if len(*steps) == MaxSteps {
			return errSteps
		}
		var one documentStep
		if err := json.UnmarshalDecode(dec, &one); err != nil {
			return err
		}
		*steps = append(*steps, one)
	}
	_, err := dec.ReadToken()
	return err
}

// unreadable names the place where a text is not a valid plan.
func unreadable(err error) error {
	e := &PlanError{Problem: "cannot be read: " + err.Error(), Want: "a JSON object with tenant, id and steps", Err: err}
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		e.Path = string(semantic.JSONPointer)
	case errors.As(err, &syntactic):
		e.Path = string(syntactic.JSONPointer)
	}
	return e
}

func tooLarge(n int) error {
	return &PlanError{Problem: fmt.Sprintf("has %d bytes", n), Want: fmt.Sprintf("at most %d", MaxPlan)}
}

func (p Plan) decodeStep(i int, d documentStep) (err error) {
	s := &p.Steps[i]
	if d.Grace != "" {
		if s.Grace, err = time.ParseDuration(d.Grace); err != nil {
			return p.wrong(i, "/grace", `a duration like "5m"`, "is %q", d.Grace)
		}
	}
	left := map[string]any{"tenant": p.Tenant, "workflow": p.ID, "step": s.Name}
	if s.Intent, err = p.decodeIntent(i, "/intent", d.Intent, left); err != nil {
		return err
	}
	if len(d.Undo) == 0 {
		return nil
	}
	maps.Copy(left, map[string]any{"tool": s.Intent.Tool, "destination": s.Intent.Destination, "kind": s.Intent.Kind, "key": s.Intent.Key})
	undo, err := p.decodeIntent(i, "/undo", d.Undo, left)
	s.Undo = &undo
	return err
}

// decodeIntent reads an intent and fills in what it omits.
func (p Plan) decodeIntent(i int, at string, text jsontext.Value, left map[string]any) (intent.WriteIntent, error) {
	if text.Kind() != jsontext.KindBeginObject {
		return intent.WriteIntent{}, p.wrong(i, at, "a write intent, a JSON object", "is missing, or no object")
	}
	have := jsonkind.Members(text, maxMembers)
	if have == nil {
		return intent.WriteIntent{}, p.wrong(i, at, "a write intent, those members alone that the contract has", "has more than %d members", maxMembers)
	}
	for name, value := range left {
		if _, ok := have[name]; ok {
			continue
		}
		put, err := intent.Canonical(value)
		if err != nil {
			return intent.WriteIntent{}, p.refused(i, at, err)
		}
		have[name] = put
	}
	whole, err := json.Marshal(have)
	if err != nil {
		return intent.WriteIntent{}, p.refused(i, at, err)
	}
	w, err := intent.Decode(whole)
	if err != nil {
		return w, p.refused(i, at, err)
	}
	return w, nil
}

// Encode returns the plan as JSON that [Decode] reads. It fails for intents that canonical JSON
// cannot hold.
func (p Plan) Encode() ([]byte, error) {
	d := document{Tenant: p.Tenant, ID: p.ID, CorrelationID: p.CorrelationID, Steps: []documentStep{}}
	for i, s := range p.Steps {
		one := documentStep{Name: s.Name, After: s.After, Revert: string(s.Revert)}
		if s.Grace != 0 {
			one.Grace = s.Grace.String()
		}
		var err error
		if one.Intent, err = s.Intent.Encode(); err != nil {
			return nil, p.refused(i, "/intent", err)
		}
		if s.Undo != nil {
			if one.Undo, err = s.Undo.Encode(); err != nil {
				return nil, p.refused(i, "/undo", err)
			}
		}
		d.Steps = append(d.Steps, one)
	}
	return json.Marshal(d, json.Deterministic(true))
}

// MarshalJSON is [Plan.Encode].
func (p Plan) MarshalJSON() ([]byte, error) { return p.Encode() }

// UnmarshalJSON is [Decode].
func (p *Plan) UnmarshalJSON(data []byte) (err error) {
	*p, err = Decode(data)
	return err
}

// digest fingerprints a plan. It excludes deadlines and correlation IDs, like the digest of an
// intent.
func (p Plan) digest() (string, error) {
	var parts []any
	for _, s := range p.Steps {
		asked, err := s.Intent.Digest()
		if err != nil {
			return "", err
		}
		undo := ""
		if s.Undo != nil {
			if undo, err = s.Undo.Digest(); err != nil {
				return "", err
			}
		}
		after := strings.Join(slices.Sorted(slices.Values(s.After)), "\n")
		parts = append(parts, []any{s.Name, s.Intent.StructuralKey(), asked, undo, after, string(s.Revert), s.Grace.String()})
	}
	text, err := intent.Canonical(parts)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
