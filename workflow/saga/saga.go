package saga

import (
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// State is where a saga stands.
type State string

// The states. Done, undone and closed are final. The zero value is none of them.
const (
	Running State = "running" // goes forward, or waits for an approval or a time
	Undoing State = "undoing" // goes back; this is never taken back
	Done    State = "done"    // every step is done, and was seen
	Undone  State = "undone"  // every step that was begun is compensated or known not to have been applied
	Review  State = "review"  // a person must see to it
	Closed  State = "closed"  // a person has seen to what it could not settle by itself
)

// Saga is where a saga stands, with the whole picture: what each step is, what
// is known of it, and what a person may do about it.
type Saga struct {
	Tenant        string `json:"tenant"`
	ID            string `json:"id"`
	CorrelationID string `json:"correlation_id,omitempty"`
	State         State  `json:"state"`
	// Reason is a sentence for a person: why it stands there.
	Reason string `json:"reason"`
	// By is who began it, where that is known.
	By string `json:"by,omitempty"`
	// Trace is the W3C trace context that it was begun in, where it was in one: its
	// writes are in that trace.
	Trace string `json:"trace,omitempty"`
	// PastPivot says that it can only go forward.
	PastPivot bool `json:"past_pivot"`
	// Back is why it goes back, Stopped why it goes no further; nil when it
	// does neither.
	Back    *Turn `json:"back,omitempty"`
	Stopped *Turn `json:"stopped,omitempty"`
	// Closed is who closed it and why, nil when nobody did.
	Closed *Turn `json:"closed,omitempty"`
	// Steps stand in the order in which they are carried out.
	Steps []StepState `json:"steps"`
	// Next is when it is looked at again by itself. Zero: never.
	Next    time.Time `json:"next,omitzero"`
	Since   time.Time `json:"since"` // since when state and reason are what they are
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	// Now is the time on the ledger's clock.
	Now time.Time `json:"now"`
}

// Over reports whether nothing more happens to the saga by itself.
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
	// WriteID is its write, the last one where it was repeated; "" before it was
	// begun. Attempts is how many times it was begun.
	WriteID  ledger.ID `json:"write_id,omitempty"`
	Attempts int       `json:"attempts"`
	// Status is where that write stands, "" before it was begun. Text is a
	// sentence about it.
	Status engine.Status `json:"status,omitempty"`
	Text   string        `json:"text"`
	// Ref and URL name the record at the destination, where it was verified.
	Ref string `json:"ref,omitempty"`
	URL string `json:"url,omitempty"`
	// NotBefore is the end of its grace, once that runs.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Undoing is the write that undoes it, known before the step is begun, and
	// UndoBy who builds it: connector or plan. Both are "" for a step that is
	// never undone. UndoStatus is where that write stands, "" before it is begun.
	Undoing    ledger.ID     `json:"undoing,omitempty"`
	UndoBy     string        `json:"undo_by,omitempty"`
	UndoStatus engine.Status `json:"undo_status,omitempty"`
	UndoText   string        `json:"undo_text,omitempty"`
	// Blocked is the write that stood in its way.
	Blocked *Blocked `json:"blocked,omitempty"`
	// May is what a person may say about its write, or about its undoing.
	May     []engine.Word `json:"may,omitempty"`
	UndoMay []engine.Word `json:"undo_may,omitempty"`
}

// view is a saga as it is shown.
func view(p ledger.Paper, b body) Saga {
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

// tell puts in what the ledger knows of a step now.
func (v *StepState) tell(rec ledger.Record) {
	out := engine.OutcomeOf(rec)
	v.Status, v.Text, v.Ref, v.URL, v.May = out.Status, out.Text, out.Ref, out.URL, may(rec)
}

func (v *StepState) tellUndo(rec ledger.Record) {
	out := engine.OutcomeOf(rec)
	v.UndoStatus, v.UndoText, v.UndoMay = out.Status, out.Text, may(rec)
}

// may is what a person may say about a write.
func may(rec ledger.Record) []engine.Word {
	switch rec.State {
	case ledger.Held:
		return []engine.Word{engine.WordApprove, engine.WordDeny}
	case ledger.Review:
		return []engine.Word{engine.WordAccept, engine.WordRetry, engine.WordCompensate, engine.WordAbandon}
	}
	return nil
}
