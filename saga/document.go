package saga

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxBody is the largest saga: its plan and its history.
	maxBody = MaxPlan + 256<<10
	// maxReason bounds a sentence kept in the document, in bytes.
	maxReason = 500
)

// kind is the kind of sagas' documents in a ledger, form the version of their format.
const (
	kind = ledger.SagaKind
	form = 1
)

// ErrForm is returned for a saga that a newer version wrote.
var ErrForm = errors.New("saga of a newer version")

// body is what is stored of a saga besides the records of its writes.
type body struct {
	Form          int    `json:"form"`
	Plan          string `json:"plan"` // the digest of its plan
	CorrelationID string `json:"correlation_id,omitempty"`
	By            string `json:"by,omitempty"` // the principal that began it
	// Trace is the W3C trace context that it was begun in, and that of its writes.
	Trace string `json:"trace,omitempty"`
	// Attempts is how many times in a row a retryable step is tried. Default 5.
	Attempts int    `json:"attempts,omitempty"`
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"`
	// Since is when state and reason last changed.
	Since time.Time `json:"since"`
	// Past reports that the pivot was done, or without one that the first retryable step was
	// begun: from then on the saga only goes forward.
	Past bool `json:"past,omitempty"`
	// Back is why the saga goes back. It is never removed.
	Back *Decision `json:"back,omitempty"`
	// Stopped is set if it was cancelled after the pivot, while the next step was held back: no
	// further step is begun.
	Stopped *Decision `json:"stopped,omitempty"`
	// Closed is set once a reviewer has closed it.
	Closed *Decision `json:"closed,omitempty"`
	// Stuck reports that the engine could not work on a step at the last try.
	Stuck bool       `json:"stuck,omitempty"`
	Steps []bodyStep `json:"steps"` // in order of execution
}

// Decision is a decision that ends a saga's progress.
type Decision struct {
	// By is the actor that cancelled or closed it, "" if a step failed.
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Step is the one that failed. Default none.
	Step string `json:"step,omitempty"`
	// Rule is the basis of the decision: "person", or "saga" for its own rules. Trace is the W3C
	// trace context of the deciding call. Default none.
	Rule  string `json:"rule,omitempty"`
	Trace string `json:"trace,omitempty"`
}

// The rules of decisions.
const (
	ruleReviewer = "person"
	ruleSaga     = "saga"
)

func (t Decision) why() string {
	if t.By != "" {
		return fmt.Sprintf("%s cancelled it: %s", t.By, t.Reason)
	}
	return t.Reason
}

// bodyStep is a step and its history.
type bodyStep struct {
	Name   string               `json:"name"`
	Class  intent.Reversibility `json:"class"`
	Revert Revert               `json:"revert,omitempty"`
	After  []string             `json:"after,omitempty"`
	Grace  time.Duration        `json:"grace,omitempty"`
	Intent json.RawMessage      `json:"intent"`         // as planned; a repeat has another call number
	Undo   json.RawMessage      `json:"undo,omitempty"` // as planned

	// NotBefore is the end of its grace, once that has started.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Writes are the writes of the step, the last one last: one for each time it was begun. Tries
	// counts those since a caller last resumed it.
	Writes []ledger.ID `json:"writes,omitempty"`
	Tries  int         `json:"tries,omitempty"`
	// UndoID is the write that will undo the last one, UndoBy the builder of that write
	// (connector or plan): registered before the step was begun.
	UndoID ledger.ID `json:"undo_id,omitempty"`
	UndoBy string    `json:"undo_by,omitempty"`
	// Status is the last known status when the document was written.
	Status ledger.Status `json:"status,omitempty"`
	// Blocked is why the ledger did not accept its write.
	Blocked *Blocked `json:"blocked,omitempty"`
}

// Blocked is why a step could not be begun: the ledger does not accept its write.
type Blocked struct {
	// Workflow, Step, Write and State are those of the write that blocks it, if one does.
	Workflow string    `json:"workflow,omitempty"`
	Step     string    `json:"step,omitempty"`
	Write    ledger.ID `json:"write,omitempty"`
	State    string    `json:"state,omitempty"`
	Reason   string    `json:"reason"`
}

func (b Blocked) why(step string) string {
	return fmt.Sprintf("step %q cannot be begun: %s", step, b.Reason)
}

// Builders of an undoing.
const (
	undoByConnector = "connector"
	undoByPlan      = "plan"
)

// newBody is a saga before its first move.
func newBody(p Plan, steps []checked, by string, now time.Time) (body, error) {
	digest, err := p.digest()
	if err != nil {
		return body{}, err
	}
	b := body{Form: form, Plan: digest, CorrelationID: p.CorrelationID, By: by, State: Running, Since: now}
	for _, s := range steps {
		one := bodyStep{Name: s.Name, Class: s.class, Revert: s.revert, After: s.After, Grace: s.Grace}
		if one.Intent, err = s.Intent.Encode(); err != nil {
			return b, err
		}
		if s.Undo != nil {
			if one.Undo, err = s.Undo.Encode(); err != nil {
				return b, err
			}
		}
		b.Steps = append(b.Steps, one)
	}
	return b, nil
}

func (b body) encode() (json.RawMessage, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // otherwise markup in an intent would take six times its space
	if err := enc.Encode(b); err != nil {
		return nil, err
	}
	if text.Len() > maxBody {
		return nil, tooLarge(text.Len())
	}
	return bytes.TrimSpace(text.Bytes()), nil
}

func decodeBody(p ledger.Document) (body, error) {
	var b body
	if err := json.Unmarshal(p.Body, &b); err != nil {
		return b, fmt.Errorf("%w: saga %q: %w", ledger.ErrCorrupt, p.ID, err)
	}
	if b.Form > form {
		return b, fmt.Errorf("%w: saga %q has form %d, this program knows up to %d", ErrForm, p.ID, b.Form, form)
	}
	return b, nil
}

// copy is a body that can be changed without changing this one.
func (b body) copy() body {
	b.Steps = append([]bodyStep(nil), b.Steps...)
	return b
}

// begun reports whether the step was begun at least once.
func (s bodyStep) begun() bool { return len(s.Writes) > 0 }

// write is the last write of the step.
func (s bodyStep) write() ledger.ID {
	if len(s.Writes) == 0 {
		return ""
	}
	return s.Writes[len(s.Writes)-1]
}

// planned is the intent of the next write of the step.
func (s bodyStep) planned() (intent.WriteIntent, error) {
	w, err := intent.DecodeStored(s.Intent)
	if err != nil {
		return w, fmt.Errorf("%w: step %q: the stored intent: %w", ledger.ErrCorrupt, s.Name, err)
	}
	w.Call += len(s.Writes)
	return w, nil
}

// undoing is the write that undoes the step, if the plan declares it.
func (s bodyStep) undoing() (*intent.WriteIntent, error) {
	if len(s.Undo) == 0 {
		return nil, nil
	}
	w, err := intent.DecodeStored(s.Undo)
	if err != nil {
		return nil, fmt.Errorf("%w: step %q: the stored undoing: %w", ledger.ErrCorrupt, s.Name, err)
	}
	return &w, nil
}

// undoOf names the write that undoes a write, as the engine will.
func undoOf(w intent.WriteIntent, id ledger.ID) ledger.ID {
	w.Compensates = string(id) // the rest of its name is that of the write it undoes
	return ledger.IDOf(w.StructuralKey())
}

// clipped is a sentence that can be stored and shown: it can quote a destination or a reviewer.
func clipped(s string) string {
	return visible.Cut(visible.Text(s), maxReason)
}
