package ledger

import (
	"encoding/json"
	"fmt"
)

// identity is the evidence of the reserved event: [Record.Identity] without the intent, which the
// digest represents. A field that is added there must be added here too.
type identity struct {
	ID             ID     `json:"id"`
	Tenant         string `json:"tenant"`
	Workflow       string `json:"workflow"`
	Step           string `json:"step,omitempty"`
	Tool           string `json:"tool"`
	Call           int    `json:"call,omitempty"`
	StructuralKey  string `json:"structural_key"`
	Digest         string `json:"digest"`
	KeyDigest      string `json:"key_digest,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	CorrelationID  string `json:"correlation_id,omitempty"`
	Destination    string `json:"destination"`
	Kind           string `json:"kind"`
	Parent         ID     `json:"parent,omitempty"`
	Delegated      bool   `json:"entrusted,omitempty"`
	RequestedBy    string `json:"requested_by,omitempty"`
	Trace          string `json:"trace,omitempty"`

	NotChecked []string `json:"not_checked,omitempty"`
	Proof      string   `json:"proof,omitempty"`
}

// identityOf returns the identity of a record as evidence.
func identityOf(r Record) (json.RawMessage, error) {
	text, err := json.Marshal(identity{
		ID: r.ID, Tenant: r.Tenant, Workflow: r.Workflow, Step: r.Step, Tool: r.Tool, Call: r.Call,
		StructuralKey: r.StructuralKey, Digest: r.Digest, KeyDigest: r.KeyDigest,
		IdempotencyKey: r.IdempotencyKey, CorrelationID: r.CorrelationID, Destination: r.Destination, Kind: r.Kind,
		Parent: r.Parent, Delegated: r.Delegated, RequestedBy: r.RequestedBy, Trace: r.Trace, NotChecked: r.NotChecked, Proof: r.Proof,
	})
	if err != nil {
		return nil, fmt.Errorf("reserve: the identity of write %s cannot be kept: %w", r.ID, err)
	}
	return text, nil
}

// record returns the identity as the record that was reserved.
func (i identity) record() Record {
	return Record{
		ID: i.ID, Tenant: i.Tenant, Workflow: i.Workflow, Step: i.Step, Tool: i.Tool, Call: i.Call,
		StructuralKey: i.StructuralKey, Digest: i.Digest, KeyDigest: i.KeyDigest,
		IdempotencyKey: i.IdempotencyKey, CorrelationID: i.CorrelationID, Destination: i.Destination, Kind: i.Kind,
		Parent: i.Parent, Delegated: i.Delegated, RequestedBy: i.RequestedBy, Trace: i.Trace, NotChecked: i.NotChecked, Proof: i.Proof,
	}
}

// Rebuild derives the record from all events of one write: what [Ledger.Get] would return,
// without reading the stored record. What no event contains stays zero: the intent's body (its
// digest is there), the lease, and that the write was pruned. Fence is the highest that an event
// was appended under; Now is the time of the last event.
//
// It fails with [ErrCorrupt] where events are missing or out of order, or the first one does not
// identify the write; and with [ErrIllegalMove].
func Rebuild(events []Event) (Record, error) {
	if len(events) == 0 {
		return Record{}, fmt.Errorf("%w: a write without events cannot be rebuilt", ErrCorrupt)
	}
	r, err := reserved(events[0])
	if err != nil {
		return Record{}, err
	}
	for i, e := range events {
		if want := int64(i) + 1; e.Seq != want {
			return Record{}, fmt.Errorf("%w: write %s: event %d follows where event %d belongs", ErrCorrupt, r.ID, e.Seq, want)
		}
		if r, err = Apply(r, e, e.At); err != nil {
			return Record{}, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		r.Fence = max(r.Fence, e.Fence)
	}
	return r, nil
}

// reserved returns the identity in the first event of a write.
func reserved(first Event) (Record, error) {
	if first.Kind != EvReserved || first.Seq != 1 {
		return Record{}, fmt.Errorf("%w: the life begins with event %d, %q; want event 1, %q", ErrCorrupt, first.Seq, first.Kind, EvReserved)
	}
	var i identity
	if err := json.Unmarshal(first.Evidence, &i); err != nil {
		return Record{}, fmt.Errorf("%w: the identity in the reserved event cannot be read: %w", ErrCorrupt, err)
	}
	if i.ID == "" || i.Tenant == "" || i.ID != IDOf(i.StructuralKey) {
		return Record{}, fmt.Errorf("%w: the reserved event is of write %q of tenant %q, whose structural key %.12q is another write's", ErrCorrupt, i.ID, i.Tenant, i.StructuralKey)
	}
	return i.record(), nil
}
