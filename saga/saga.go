package saga

import (
	"slices"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// State is the state of a saga.
type State string

// The states. Done, undone and closed are final. The zero value is none of them.
const (
	Running State = "running" // goes forward, or waits for an approval or a time
	Undoing State = "undoing" // goes back; irrevocable
	Done    State = "done"    // every step is done and was observed
	Undone  State = "undone"  // every step that was begun is compensated or known not to have been applied
	Review  State = "review"  // a reviewer must decide
	Closed  State = "closed"  // a reviewer closed what it could not settle by itself
)

// Saga is the state of a saga: each step, what is known of it, and what a reviewer may decide
// about it.
type Saga struct {
	Tenant        string `json:"tenant"`
	ID            string `json:"id"`
	CorrelationID string `json:"correlation_id,omitempty"`
	State         State  `json:"state"`
	// Reason is a sentence for a reviewer: why it is in this state. It and the reasons of decisions
	// can quote a destination or a reviewer, and have no invisible characters.
	Reason string `json:"reason"`
	// By is the actor that began it, if known.
	By string `json:"by,omitempty"`
	// Trace is the W3C trace context that it was begun in, if any: its writes are in that trace.
	Trace string `json:"trace,omitempty"`
	// PastPivot reports that it can only go forward.
	PastPivot bool `json:"past_pivot"`
	// ReviewURL is the page where a reviewer sees to it, while it or one of its writes waits for
	// one. The engine leaves it empty; a server with a review UI sets it.
	ReviewURL string `json:"review_url,omitempty"`
	// Back is why it goes back, Stopped why it goes no further; nil when it does neither.
	Back    *Decision `json:"back,omitempty"`
	Stopped *Decision `json:"stopped,omitempty"`
	// Closed is the actor that closed it and the reason, nil if it is not closed.
	Closed *Decision `json:"closed,omitempty"`
	// Steps are in order of execution.
	Steps []StepState `json:"steps"`
	// Next is when a worker reads it again. Zero: never.
	Next    time.Time `json:"next,omitzero"`
	Since   time.Time `json:"since"` // when state and reason last changed
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	// Now is the time on the ledger's clock.
	Now time.Time `json:"now"`
}

// Over reports whether the saga makes no further move by itself.
func (s Saga) Over() bool {
	return s.State == Done || s.State == Undone || s.State == Closed || s.State == Review
}

// StepState is a step of a saga.
type StepState struct {
	Name        string               `json:"name"`
	Class       intent.Reversibility `json:"class"`
	Revert      string               `json:"revert"` // easy, hard, never
	After       []string             `json:"after,omitempty"`
	Tool        string               `json:"tool"`
	Destination string               `json:"destination"`
	Kind        string               `json:"kind"`
	Write       intent.WriteType     `json:"write"`
	// WriteID is its write, the last one if it was repeated; "" before it was begun. Attempts is
	// how many times it was begun.
	WriteID  ledger.ID `json:"write_id,omitempty"`
	Attempts int       `json:"attempts"`
	// Status is the status of that write, "" before it was begun. Text is a sentence about it.
	Status ledger.Status `json:"status,omitempty"`
	Text   string        `json:"text"`
	// Ref and URL name the record at the destination, if it was verified.
	Ref string `json:"ref,omitempty"`
	URL string `json:"url,omitempty"`
	// Untrusted lists the members of the step, as JSON Pointers, that hold text from a
	// destination or a reviewer. LeftOut lists ref and url if the destination gave one that is
	// not plain; see [engine.Outcome].
	Untrusted []string `json:"untrusted,omitempty"`
	LeftOut   []string `json:"left_out,omitempty"`
	// NotBefore is the end of its grace, once that has started.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Undoing is the write that undoes it, known before the step is begun, and UndoBy the builder
	// of it: connector or plan. Both are "" for a step that is never undone. UndoStatus is the
	// status of that write, "" before it is begun.
	Undoing    ledger.ID     `json:"undoing,omitempty"`
	UndoBy     string        `json:"undo_by,omitempty"`
	UndoStatus ledger.Status `json:"undo_status,omitempty"`
	UndoText   string        `json:"undo_text,omitempty"`
	// Blocked is the write that blocked it.
	Blocked *Blocked `json:"blocked,omitempty"`
	// May lists the decisions that a reviewer may make about its write, or about its undoing.
	May     []engine.Word `json:"may,omitempty"`
	UndoMay []engine.Word `json:"undo_may,omitempty"`
}

// view is a saga as it is returned.
func view(p ledger.Document, b body) Saga {
	s := Saga{Tenant: p.Tenant, ID: p.ID, CorrelationID: b.CorrelationID, State: b.State, Reason: b.Reason, By: b.By, Trace: b.Trace,
		PastPivot: b.Past, Back: b.Back, Stopped: b.Stopped, Closed: b.Closed, Steps: []StepState{},
		Next: p.Due, Since: b.Since, Created: p.Created, Updated: p.Updated, Now: p.Now}
	for _, one := range b.Steps {
		s.Steps = append(s.Steps, one.view())
	}
	return s
}

func (s bodyStep) view() StepState {
	v := StepState{Name: s.Name, Class: s.Class, Revert: s.Revert.String(), After: s.After, WriteID: s.write(), Attempts: len(s.Writes),
		Status: s.Status, NotBefore: s.NotBefore, Undoing: s.UndoID, UndoBy: s.UndoBy, Blocked: s.Blocked, Text: "It was not begun; nothing was sent."}
	if s.Blocked != nil {
		v.Text = "It was not begun; nothing was sent: " + s.Blocked.Reason + "."
	}
	if w, err := s.planned(); err == nil {
		v.Tool, v.Destination, v.Kind, v.Write = w.Tool, w.Destination, w.Kind, w.Write
	}
	if s.begun() {
		v.Text = "The ledger no longer knows what became of it."
	}
	return v
}

// fill adds the current ledger state of a step.
func (v *StepState) fill(rec ledger.Record) {
	out := engine.OutcomeOf(rec)
	v.Status, v.Text, v.Ref, v.URL, v.May = out.Status, out.Text, out.Ref, out.URL, may(rec)
	v.LeftOut = out.LeftOut
	for _, member := range out.Untrusted {
		if slices.Contains([]string{"/text", "/ref", "/url"}, member) { // a step has no others of an outcome
			v.Untrusted = append(v.Untrusted, member)
		}
	}
}

func (v *StepState) fillUndo(rec ledger.Record) {
	out := engine.OutcomeOf(rec)
	v.UndoStatus, v.UndoText, v.UndoMay = out.Status, out.Text, may(rec)
	if slices.Contains(out.Untrusted, "/text") {
		v.Untrusted = append(v.Untrusted, "/undo_text")
	}
}

// may lists the decisions that a reviewer may make about a write.
func may(rec ledger.Record) []engine.Word {
	switch rec.State {
	case ledger.Held:
		return []engine.Word{engine.WordApprove, engine.WordDeny}
	case ledger.Review:
		return []engine.Word{engine.WordAccept, engine.WordRetry, engine.WordCompensate, engine.WordAbandon}
	}
	return nil
}
